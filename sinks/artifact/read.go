package artifact

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/file"
)

// Open opens the artifact that uri names, for reading from its beginning. The
// caller closes it; Seek and ReadAt give ranges of bytes.
func (s *Store) Open(uri string) (*os.File, error) {
	info, err := s.Resolve(uri)
	if err != nil {
		return nil, err
	}
	f, err := file.Open(info.Path)
	if err != nil {
		return nil, fmt.Errorf("open artifact %d: %w", info.ID, err)
	}
	return f, nil
}

// Range is a part of an artifact.
type Range struct {
	// First and Last are lines, counted from 1, both included. 0: from the
	// beginning, to the end.
	First, Last int64
	// MaxBytes bounds what is returned, to whole lines unless the first alone
	// is longer. 0: 50 KiB.
	MaxBytes int64
}

// defaultPart is how many bytes are read at once.
const defaultPart = 50 << 10

// Part is what [Store.ReadLines] and [Store.ReadBytes] found.
type Part struct {
	Text []byte
	// First and Last are the lines in Text; both are 0 when there is none.
	First, Last int64
	// More says that the range has lines, or the end of a line, that did not fit.
	More bool
	// Begin and End are where Text lies in the file, in bytes: [Store.ReadBytes] with
	// End reads on, also in the middle of a line.
	Begin, End int64
	// Size is how many bytes the artifact had when it was read.
	Size int64
}

// ReadLines returns lines of an artifact. A range past the end is empty.
func (s *Store) ReadLines(uri string, r Range) (Part, error) {
	if r.MaxBytes <= 0 {
		r.MaxBytes = defaultPart
	}
	if r.First < 0 || r.Last < 0 || r.Last > 0 && r.Last < r.First {
		return Part{}, fmt.Errorf("read %s: %w", uri, ErrBadRange)
	}
	f, err := s.Open(uri)
	if err != nil {
		return Part{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	// As much as there is now: whoever writes on does not keep this call from ending.
	now, err := f.Stat()
	if err != nil {
		return Part{}, fmt.Errorf("read %s: %w", uri, err)
	}
	part, err := readLines(bufio.NewReaderSize(io.LimitReader(f, now.Size()), bufferSize), r)
	if err != nil {
		return Part{}, fmt.Errorf("read %s: %w", uri, err)
	}
	part.Size = now.Size()
	return part, nil
}

// ReadBytes returns at most limit bytes of an artifact from offset on; limit 0 is
// 50 KiB. Characters stay whole: it may begin up to three bytes later, and end
// earlier. First and Last of the part are 0. An offset past the end is empty.
func (s *Store) ReadBytes(uri string, offset, limit int64) (Part, error) {
	if limit <= 0 {
		limit = defaultPart
	}
	if offset < 0 {
		return Part{}, fmt.Errorf("read %s: %w", uri, ErrBadRange)
	}
	f, err := s.Open(uri)
	if err != nil {
		return Part{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	now, err := f.Stat()
	if err != nil {
		return Part{}, fmt.Errorf("read %s: %w", uri, err)
	}
	p := Part{Size: now.Size(), Begin: min(offset, now.Size())}
	text := make([]byte, min(limit, p.Size-p.Begin))
	n, err := f.ReadAt(text, p.Begin)
	if err != nil && !errors.Is(err, io.EOF) {
		return Part{}, fmt.Errorf("read %s: %w", uri, err)
	}
	text = text[:n]
	atEnd := p.Begin+int64(n) >= p.Size
	if offset > 0 {
		skip := 0
		for skip < min(utf8.UTFMax-1, len(text)-1) && !utf8.RuneStart(text[skip]) {
			skip++
		}
		text, p.Begin = text[skip:], p.Begin+int64(skip)
	}
	if !atEnd {
		if whole := wholeRunes(text); whole > 0 {
			text = text[:whole]
		}
	}
	p.Text, p.End = text, p.Begin+int64(len(text))
	p.More = p.End < p.Size
	return p, nil
}

// wholeRunes returns how much of text ends with a whole character.
func wholeRunes(text []byte) int {
	for n := len(text) - 1; n >= 0 && n >= len(text)-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			if utf8.FullRune(text[n:]) {
				return len(text)
			}
			return n
		}
	}
	return len(text)
}

// readLines goes through the file once and holds no more than it returns.
func readLines(in *bufio.Reader, r Range) (p Part, err error) {
	first := max(r.First, 1)
	begin := 0 // where the current line starts in p.Text
	defer func() { p.End = p.Begin + int64(len(p.Text)) }()
	for line := int64(1); r.Last == 0 || line <= r.Last; {
		piece, err := in.ReadSlice('\n')
		if line < first {
			p.Begin += int64(len(piece))
		}
		if len(piece) > 0 && line >= first {
			room := r.MaxBytes - int64(len(p.Text))
			if int64(len(piece)) > room {
				p.More = true
				if begin > 0 {
					p.Text, p.Last = p.Text[:begin], line-1
					return p, nil
				}
				for room > 0 && !utf8.RuneStart(piece[room]) { // a line that alone is too long
					room--
				}
				p.Text, p.First, p.Last = append(p.Text, piece[:room]...), first, line
				return p, nil
			}
			p.Text = append(p.Text, piece...)
			p.First, p.Last = first, line
		}
		switch {
		case err == nil:
			line++
			begin = len(p.Text)
		case errors.Is(err, io.EOF):
			return p, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return p, err
		}
	}
	return p, nil
}

// CopyLines copies the lines first to last of in to out, both included and
// counted from 1; 0 is the beginning and the end. It copies bytes as they are,
// and holds no more than a buffer, however long a line is.
func CopyLines(out io.Writer, in io.Reader, first, last int64) error {
	if first < 0 || last < 0 || last > 0 && last < first {
		return fmt.Errorf("copy lines %d to %d: %w", first, last, ErrBadRange)
	}
	r := bufio.NewReaderSize(in, bufferSize)
	for line := int64(1); last == 0 || line <= last; {
		piece, err := r.ReadSlice('\n')
		if line >= first {
			if _, werr := out.Write(piece); werr != nil {
				return fmt.Errorf("copy lines: %w", werr)
			}
		}
		switch {
		case err == nil:
			line++
		case errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("copy lines: %w", err)
		}
	}
	return nil
}
