package notebook

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure, for errors.Is. The text of an error comes from [Error].
var (
	// ErrNotFound: there is no file at the path. The error is fs.ErrNotExist
	// too.
	ErrNotFound = errors.New("notebook not found")
	// ErrNotFile: there is no regular file at the path, but a directory, a FIFO, a
	// device or a socket.
	ErrNotFile = errors.New("notebook is no file")
	// ErrTooLarge: the file has more than [MaxFile] bytes.
	ErrTooLarge = errors.New("notebook is too large")
	// ErrInvalidJSON: the file is not JSON, or not UTF-8.
	ErrInvalidJSON = errors.New("invalid JSON")
	// ErrStructure: the JSON is no notebook: the root is no object, or has no
	// array of cells.
	ErrStructure = errors.New("invalid notebook structure")
	// ErrCell: a cell is no object, or its cell_type is not code, markdown or
	// raw.
	ErrCell = errors.New("invalid notebook cell")
	// ErrVersion: an nbformat that this package cannot read.
	ErrVersion = errors.New("unsupported nbformat")
	// ErrText: text that is no editable representation of a notebook, such as
	// one with text before the first cell marker.
	ErrText = errors.New("invalid notebook editable representation")
	// ErrNoCell: an index or id that names no cell, or more than one.
	ErrNoCell = errors.New("no such cell")
	// ErrSelector: a line selector that cannot be read.
	ErrSelector = errors.New("invalid line selector")
	// ErrArgument: an argument that an edit cannot take, such as an id that is
	// in use or a tag with a comma.
	ErrArgument = errors.New("invalid argument")
	// ErrChanged: the file is not what was read; saving would lose the change.
	ErrChanged = errors.New("notebook changed on disk")
	// ErrLocked: another process or goroutine held the file's lock until the context ended.
	ErrLocked = errors.New("notebook is locked")
)

// Error is a failure about one notebook. The messages for what a reader meets
// (a missing file, bad JSON, a bad structure, a bad cell, bad text) begin with
// a fixed sentence that names the path, and go on with what was found.
type Error struct {
	// Kind is one of the sentinels above.
	Kind error
	// Path is the file, empty when the notebook came from memory.
	Path string
	// Cell is the index of the cell, when Kind is ErrCell.
	Cell int
	// Line and Column are where the JSON or the text went wrong, from 1; 0
	// when that is not known. Columns count bytes.
	Line, Column int
	// Reason says what is wrong.
	Reason string
	// Err is the cause, if another error is.
	Err error
}

// Error returns the sentence for a person.
func (e *Error) Error() string {
	var b strings.Builder
	of := func(sentence, preposition string) {
		b.WriteString(sentence)
		if e.Path != "" {
			b.WriteString(preposition + e.Path)
		}
	}
	detail := e.Reason
	switch {
	case errors.Is(e.Kind, ErrNotFound):
		of("Notebook not found", ": ")
		return b.String()
	case errors.Is(e.Kind, ErrInvalidJSON):
		of("Invalid JSON in notebook", ": ")
	case errors.Is(e.Kind, ErrStructure):
		of("Invalid notebook structure ("+e.Reason+")", ": ")
		detail = ""
	case errors.Is(e.Kind, ErrCell):
		of(fmt.Sprintf("Invalid notebook cell %d", e.Cell), " in ")
	case errors.Is(e.Kind, ErrText):
		of("Invalid notebook editable representation", " for ")
	default:
		of(e.Kind.Error(), ": ")
	}
	if e.Line > 0 {
		detail = fmt.Sprintf("%s (line %d, column %d)", detail, e.Line, e.Column)
	}
	if detail != "" {
		b.WriteString(": " + detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Is makes errors.Is find the kind.
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fault(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// withPath names the file in an *Error that does not name one yet.
func withPath(err error, path string) error {
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = path
	}
	return err
}

// jsonFault turns a syntax error into an *Error with line and column.
func jsonFault(src []byte, err error) error {
	var se *syntaxError
	if !errors.As(err, &se) {
		return &Error{Kind: ErrInvalidJSON, Err: err}
	}
	offset := min(se.offset, len(src))
	before := string(src[:offset])
	line := 1 + strings.Count(before, "\n")
	column := offset - strings.LastIndexByte(before, '\n')
	return &Error{Kind: ErrInvalidJSON, Line: line, Column: column, Reason: se.reason}
}
