package notebook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-run/coppice/internal/file"
)

// What an outline leaves out, and how much of the file is held at a time.
const (
	outlineLimit  = 32 << 10 // bytes of a string that is no source
	outlineWindow = 256 << 10
)

// OpenOutline reads a notebook to look at its cells: it has no outputs, and
// strings of more than 32 KiB that are no sources, such as attached pictures, are
// empty. Text, Select and Cells are those of the whole notebook. The file is
// walked through a window, so memory is that of the sources, whatever the size of
// the file.
//
// An outline is not for saving. What is left out is not checked: that it is
// JSON shows in Open. Errors are those of Open.
func OpenOutline(ctx context.Context, path string) (*Document, error) {
	f, err := file.Open(path)
	if err != nil {
		return nil, openFault(path, err)
	}
	data, err := outline(file.NewReader(ctx, f, MaxFile), outlineLimit, make([]byte, outlineWindow))
	_ = f.Close() // it was only read
	if err == nil {
		if d, err := Parse(data); err == nil {
			return d, nil
		}
	}
	whole, err := Open(ctx, path) // it knows where the mistake is
	if err != nil {
		return nil, err
	}
	return whole.Document, nil
}

// outliner copies JSON and leaves things out. It understands as much of JSON as
// that takes: what is not an output stays as it is.
type outliner struct {
	in     io.Reader
	window []byte
	rest   []byte // of the window, not yet read
	out    []byte
	limit  int

	keys []string // of the containers that are open
	key  string   // of the value that comes next; "" in an array
	last string   // the last string that was read, if it may be a key
}

// outline reads a notebook and returns it without what an outline leaves out.
func outline(in io.Reader, limit int, window []byte) ([]byte, error) {
	o := &outliner{in: in, window: window, limit: limit}
	for {
		c, err := o.next()
		if errors.Is(err, io.EOF) {
			return o.out, nil
		}
		if err != nil {
			return nil, err
		}
		if err := o.token(c); err != nil {
			return nil, err
		}
	}
}

// next returns the next byte.
func (o *outliner) next() (byte, error) {
	if err := o.fill(); err != nil {
		return 0, err
	}
	c := o.rest[0]
	o.rest = o.rest[1:]
	return c, nil
}

// fill makes sure that there is something to read.
func (o *outliner) fill() error {
	for len(o.rest) == 0 {
		n, err := o.in.Read(o.window)
		o.rest = o.window[:n]
		if n == 0 && err != nil {
			return err
		}
	}
	return nil
}

func (o *outliner) token(c byte) error {
	if c != '"' {
		o.out = append(o.out, c)
	}
	switch c {
	case '"':
		return o.text()
	case ':':
		o.key = o.last
	case ',':
		o.key = ""
	case '{', '[':
		if len(o.keys) >= maxDepth {
			return fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		if c == '[' && o.key == "outputs" {
			return o.drop()
		}
		o.keys = append(o.keys, o.key)
		o.key = ""
	case '}', ']':
		if len(o.keys) > 0 {
			o.keys = o.keys[:len(o.keys)-1]
		}
		o.key = ""
	}
	return nil
}

// source says whether the next value belongs to the source of a cell: in an
// array, that is up to whose the array is. A key that is spelled with escapes may
// be any.
func (o *outliner) source() bool {
	key := o.key
	if key == "" && len(o.keys) > 0 {
		key = o.keys[len(o.keys)-1]
	}
	return key == "source" || key == "input" || strings.Contains(key, `\`)
}

// text copies a string whose first quotation mark was read, unless it is too
// long.
func (o *outliner) text() error {
	start, keep := len(o.out), o.source()
	o.out = append(o.out, '"')
	for dropped := false; ; {
		part, end, err := o.part()
		if err != nil {
			return err
		}
		if !dropped {
			o.out = append(o.out, part...)
		}
		if !keep && len(o.out)-start > o.limit {
			o.out, dropped = append(o.out[:start], '"'), true
		}
		if end {
			o.out = append(o.out, '"')
			break
		}
	}
	o.last = ""
	if text := o.out[start+1 : len(o.out)-1]; len(text) <= len("outputs") || bytes.IndexByte(text, '\\') >= 0 {
		o.last = string(text)
	}
	return nil
}

// part returns the next piece of a string: up to its end, or to that of the
// window, or one escape. It is valid until the next call.
func (o *outliner) part() (part []byte, end bool, err error) {
	if err := o.fill(); err != nil {
		return nil, false, noEOF(err)
	}
	n := bytes.IndexByte(o.rest, '"')
	whole := n >= 0
	if !whole {
		n = len(o.rest)
	}
	if escape := bytes.IndexByte(o.rest[:n], '\\'); escape == 0 {
		c, err := o.escape()
		return []byte{'\\', c}, false, err
	} else if escape > 0 {
		n, whole = escape, false
	}
	part = o.rest[:n]
	o.rest = o.rest[n:]
	if whole {
		o.rest = o.rest[1:]
	}
	return part, whole, nil
}

// escape returns what stands behind a backslash.
func (o *outliner) escape() (byte, error) {
	o.rest = o.rest[1:]
	c, err := o.next()
	return c, noEOF(err)
}

// drop passes what is in an array, and writes its end.
func (o *outliner) drop() error {
	for depth := 1; depth > 0; {
		c, err := o.next()
		if err != nil {
			return noEOF(err)
		}
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"':
			for end := false; !end; {
				if _, end, err = o.part(); err != nil {
					return err
				}
			}
		}
	}
	o.out = append(o.out, ']')
	o.key = ""
	return nil
}

// noEOF makes the end of the file an error: it came in the middle.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
