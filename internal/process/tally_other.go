//go:build !linux

package process

import "errors"

// Tallies says whether this system has [Tally].
const Tallies = false

// Tally finds nothing: this system has no marks, and tells no parents cheaply.
func Tally(Mark, []int) ([]Member, error) { return nil, errors.ErrUnsupported }

// TallyOf finds nothing.
func TallyOf([]int) ([]Member, error) { return nil, errors.ErrUnsupported }

// Proportional fails: this system does not tell.
func Proportional(int) (int64, error) { return 0, errors.ErrUnsupported }

// LimitFileSize fails: this system cannot limit another process.
func LimitFileSize(int, uint64) error { return errors.ErrUnsupported }

// LastStarted returns 0: this system does not tell.
func LastStarted() int { return 0 }
