package artifact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Match is one place where a text was found.
type Match struct {
	// Line is its line, counted from 1, and Offset where the text begins, in bytes.
	Line, Offset int64
	// Around is the text with what stands beside it on its line, at most 200 bytes
	// before and after it.
	Around string
}

// Found is what [Store.Search] found.
type Found struct {
	Matches []Match
	// Next is where to search on, in bytes, when there are more matches than were
	// asked for, else 0.
	Next int64
}

const (
	// searchAround is how much of the line is shown on either side of a match.
	searchAround = 200
	// searchMost bounds the text that is looked for.
	searchMost = 1 << 10
)

// ErrBadText: a text to look for is empty, too long, or more than one line.
var ErrBadText = errors.New("the text to look for must be 1 to 1024 bytes of one line")

// Search looks for a text, byte for byte, from offset on, and returns the first most
// places; most 0 is 50. It goes through the file once, up to the size that it has
// now, holds no more than a buffer however long a line is, and gives up when ctx ends.
func (s *Store) Search(ctx context.Context, uri, text string, offset int64, most int) (Found, error) {
	if most <= 0 {
		most = 50
	}
	switch {
	case text == "" || len(text) > searchMost || bytes.ContainsAny([]byte(text), "\r\n"):
		return Found{}, fmt.Errorf("search %s: %w", uri, ErrBadText)
	case offset < 0:
		return Found{}, fmt.Errorf("search %s: %w", uri, ErrBadRange)
	}
	f, err := s.Open(uri)
	if err != nil {
		return Found{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	now, err := f.Stat()
	if err != nil {
		return Found{}, fmt.Errorf("search %s: %w", uri, err)
	}
	found, err := search(ctx, bufio.NewReaderSize(io.LimitReader(f, now.Size()), bufferSize), []byte(text), offset, most)
	if err != nil {
		return Found{}, fmt.Errorf("search %s: %w", uri, err)
	}
	return found, nil
}

// search keeps a window of the file: what may still be shown before a match, and
// what has been read and not looked at.
func search(ctx context.Context, in *bufio.Reader, text []byte, offset int64, most int) (Found, error) {
	var found Found
	var (
		window []byte
		begin  int64      // of the window, in the file
		line   = int64(1) // in which the window begins
		at     int        // where the next match may begin
		ended  bool
	)
	for {
		for {
			k := bytes.Index(window[at:], text)
			if k < 0 || !ended && len(window) < at+k+len(text)+searchAround {
				break
			}
			k += at
			at = k + len(text)
			if begin+int64(k) < offset {
				continue
			}
			if len(found.Matches) == most {
				found.Next = begin + int64(k)
				return found, nil
			}
			found.Matches = append(found.Matches, Match{
				Line: line + int64(bytes.Count(window[:k], newline)), Offset: begin + int64(k), Around: around(window, k, at),
			})
		}
		if ended {
			return found, nil
		}
		if err := ctx.Err(); err != nil {
			return Found{}, context.Cause(ctx)
		}
		next := max(at, len(window)-len(text)+1) // no match begins before it
		if k := bytes.Index(window[at:], text); k >= 0 {
			next = at + k // it waits for what stands after it
		}
		if drop := next - searchAround; drop > 0 {
			line += int64(bytes.Count(window[:drop], newline))
			begin += int64(drop)
			window, at = append(window[:0], window[drop:]...), max(at-drop, 0)
		}
		piece, err := in.Peek(bufferSize)
		window = append(window, piece...)
		if _, derr := in.Discard(len(piece)); derr != nil {
			return Found{}, derr
		}
		switch {
		case errors.Is(err, io.EOF):
			ended = true
		case err != nil:
			return Found{}, err
		}
	}
}

var newline = []byte{'\n'}

// around returns what stands on the line of window[from:to], cut on both sides.
func around(window []byte, from, to int) string {
	before := window[max(0, from-searchAround):from]
	if k := bytes.LastIndexByte(before, '\n'); k >= 0 {
		before = before[k+1:]
	}
	after := window[to:min(len(window), to+searchAround)]
	if k := bytes.IndexByte(after, '\n'); k >= 0 {
		after = after[:k]
	}
	whole := window[from-len(before) : to+len(after)]
	return string(bytes.TrimRight(bytes.ToValidUTF8(whole, nil), "\r"))
}
