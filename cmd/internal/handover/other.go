//go:build !linux

package handover

import (
	"context"
	"os"
)

// Supported says whether this system can hand servers over.
const Supported = false

// Offer hears successors, on Linux.
type Offer struct{}

// Left is a server that has left, on Linux.
type Left struct{}

// Succession is the way to take a server over, on Linux.
type Succession struct{}

// Begin says ErrUnsupported.
func Begin(Options) (*Offer, error) { return nil, ErrUnsupported }

// Gone has nothing.
func (*Offer) Gone() <-chan *Left { return nil }

// Close does nothing.
func (*Offer) Close() error { return nil }

// PID is 0.
func (*Left) PID() int { return 0 }

// Wait says ErrUnsupported.
func (*Left) Wait(context.Context) error { return ErrUnsupported }

// Ask says ErrUnsupported.
func Ask(context.Context, SuccessorOptions) (*Succession, error) { return nil, ErrUnsupported }

// Given is nothing.
func (*Succession) Given() Given { return Given{} }

// Files are none.
func (*Succession) Files() []*os.File { return nil }

// Take says ErrUnsupported.
func (*Succession) Take(context.Context, func(string)) (*os.File, error) { return nil, ErrUnsupported }

// Owner is false.
func (*Succession) Owner() bool { return false }

// Taken does nothing.
func (*Succession) Taken() {}

// Close does nothing.
func (*Succession) Close() {}
