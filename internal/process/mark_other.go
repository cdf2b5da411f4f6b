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

// BelongingOf fails: this system has no marks.
func BelongingOf(int) (Belonging, error) { return Belonging{}, errors.ErrUnsupported }

// Belongings finds nothing.
func Belongings() (map[Belonging][]int, error) { return nil, nil }

// Marked finds nothing: this system has no marks.
func Marked(Mark) ([]Identity, error) { return nil, nil }
