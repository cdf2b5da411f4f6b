//go:build !linux

package process

import "errors"

// NewMark returns 0: this system has no marks.
func NewMark() Mark { return 0 }

// SetMark fails: this system has no marks.
func SetMark(int, Mark) error { return errors.ErrUnsupported }

// SetPart fails: this system has no marks.
func SetPart(int, Part) error { return errors.ErrUnsupported }

// PartOf fails: this system has no marks.
func PartOf(int) (Part, error) { return 0, errors.ErrUnsupported }

// Marked finds nothing: this system has no marks.
func Marked(Mark) ([]Identity, error) { return nil, nil }
