//go:build !linux

package process

import "time"

// RSS returns [ErrUnsupported].
func RSS(int) (int64, error) { return 0, ErrUnsupported }

// Descendants returns [ErrUnsupported].
func Descendants(Identity) ([]Identity, error) { return nil, ErrUnsupported }

// Children returns [ErrUnsupported].
func Children(Identity) ([]Identity, error) { return nil, ErrUnsupported }

// Holding returns [ErrUnsupported].
func Holding(string) ([]Identity, error) { return nil, ErrUnsupported }

// Look returns [ErrUnsupported].
func Look(int) (Activity, error) { return Activity{}, ErrUnsupported }

// CountsThreads says whether this system has [Threads].
const CountsThreads = false

// Threads returns [ErrUnsupported].
func Threads(Identity) ([]Thread, error) { return nil, ErrUnsupported }

// CPUTime returns [ErrUnsupported].
func CPUTime(int) (time.Duration, error) { return 0, ErrUnsupported }

// Private returns [ErrUnsupported].
func Private(int) (int64, error) { return 0, ErrUnsupported }

// Arguments is not supported here.
func Arguments(int) ([]string, error) { return nil, ErrUnsupported }
