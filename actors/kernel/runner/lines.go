package runner

import (
	"io"
	"slices"
)

// lines writes lines whole: what a deadline has cut off of one is written before the next,
// which it would spoil. The zero value is ready to use; one goroutine at a time.
type lines struct{ rest []byte }

// write writes a line. After an error nothing of it has gone out, or the rest of it goes out
// with the next.
func (l *lines) write(to io.Writer, line []byte) error {
	if len(l.rest) == 0 {
		n, err := to.Write(line)
		if err != nil && n > 0 {
			l.rest = append(l.rest[:0], line[n:]...)
		}
		return err
	}
	owed := len(l.rest)
	all := slices.Concat(l.rest, line)
	n, err := to.Write(all)
	switch {
	case err == nil:
		l.rest = nil
	case n <= owed: // nothing of this line
		l.rest = all[n:owed]
	default:
		l.rest = all[n:]
	}
	return err
}
