package result

import (
	"fmt"

	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
)

// spill keeps the raw output of a call until it is known whether an artifact is
// needed, and writes it to one from then on.
type spill struct {
	store *artifact.Store
	limit int    // how much is kept in memory
	held  []byte // before the artifact is opened
	file  *artifact.Writer
	err   error // why nothing is kept, or why it is not whole
	size  int64 // of all that was written
	last  byte  // the last byte, to begin a block on a line of its own
}

// write adds raw output. It returns true when more is held than may be.
func (s *spill) write(text string) bool {
	if text == "" || s.store.Dir() == "" {
		return false
	}
	s.last = text[len(text)-1]
	s.size += int64(len(text))
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

// path returns the artifact's file, "" without one.
func (s *spill) path() string {
	if s.file == nil {
		return ""
	}
	return s.file.Path()
}

// close ends the artifact.
func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// missing says what of the output the artifact does not have, or why there is none;
// "" when it has all of it, and when nothing had to be kept.
func (s *spill) missing() string {
	switch {
	case s.err != nil && s.file == nil:
		return "The full output could not be kept: " + s.err.Error()
	case s.err != nil:
		return fmt.Sprintf("%s is not whole: it has the beginning of %s of output: %v", s.uri(), budget.Size(s.size), s.err)
	case s.file != nil:
		if kept, written := s.file.Kept(); kept < written {
			return fmt.Sprintf("%s is not whole: it has the first %s of %s of output", s.uri(), budget.Size(kept), budget.Size(s.size))
		}
	}
	return ""
}
