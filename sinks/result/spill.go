package result

import "github.com/coppice-run/coppice/sinks/artifact"

// spill keeps the raw output of a call until it is known whether an artifact is
// needed, and writes it to one from then on.
type spill struct {
	store *artifact.Store
	limit int    // how much is kept in memory
	held  []byte // before the artifact is opened
	file  *artifact.Writer
	err   error // why nothing is kept, or why it is not whole
	told  bool  // err was reported
	last  byte  // the last byte, to begin a block on a line of its own
}

// write adds raw output. It returns true when more is held than may be.
func (s *spill) write(text string) bool {
	if text == "" || s.store.Dir() == "" {
		return false
	}
	s.last = text[len(text)-1]
	switch {
	case s.err != nil:
	case s.file != nil:
		_, s.err = s.file.WriteString(text)
	default:
		s.held = append(s.held, text...)
		return len(s.held) > s.limit
	}
	return false
}

// block adds raw output that begins and ends a line.
func (s *spill) block(text string) bool {
	if text == "" {
		return false
	}
	over := false
	if s.last != 0 && s.last != '\n' {
		over = s.write("\n")
	}
	over = s.write(text) || over
	if s.last != '\n' {
		over = s.write("\n") || over
	}
	return over
}

// open moves what is held to an artifact.
func (s *spill) open() {
	if s.file != nil || s.err != nil || s.store.Dir() == "" {
		return
	}
	s.file, s.err = s.store.Create()
	if s.err == nil {
		_, s.err = s.file.Write(s.held)
	}
	s.held = nil
}

// flush makes what was written readable.
func (s *spill) flush() {
	if s.file != nil && s.err == nil {
		s.err = s.file.Flush()
	}
}

// uri returns the artifact's name, "" without one.
func (s *spill) uri() string {
	if s.file == nil {
		return ""
	}
	return s.file.URI()
}

// close ends the artifact.
func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// notice returns, once, what a reader has to know about the artifact.
func (s *spill) notice() string {
	if s.err == nil || s.told {
		return ""
	}
	s.told = true
	if s.file == nil {
		return "[the full output could not be kept: " + s.err.Error() + "]"
	}
	return "[" + s.uri() + " is not whole: " + s.err.Error() + "]"
}
