//go:build !linux

package users

import (
	"context"
	"errors"
	"fmt"
)

// Options say where the numbers are held and what becomes of what they leave.
type Options struct {
	Registry string   // see the version for Linux
	Killer   []string // see the version for Linux
}

// Block is a part of the range that this host holds.
type Block struct{}

// Open returns an error that matches [errors.ErrUnsupported].
func Open(context.Context, Options) (*Block, error) {
	return nil, fmt.Errorf("hold users for sessions: %w", errors.ErrUnsupported)
}

// Group returns 0.
func (b *Block) Group() int { return 0 }

// Close does nothing.
func (b *Block) Close() error { return nil }

// Lease returns an error that matches [errors.ErrUnsupported].
func (b *Block) Lease(string) (*Lease, error) {
	return nil, fmt.Errorf("hold a user: %w", errors.ErrUnsupported)
}

// Grant returns an error that matches [errors.ErrUnsupported].
func Grant(string, int) (func() error, error) {
	return nil, fmt.Errorf("open a folder: %w", errors.ErrUnsupported)
}

// Pass returns an error that matches [errors.ErrUnsupported].
func Pass(string, int) (func() error, error) {
	return nil, fmt.Errorf("open a folder: %w", errors.ErrUnsupported)
}

// Lease is a number that is held.
type Lease struct{}

// UID returns 0.
func (l *Lease) UID() int { return 0 }

// Folder returns "".
func (l *Lease) Folder() string { return "" }

// Share returns the lease.
func (l *Lease) Share() *Lease { return l }

// Release does nothing.
func (l *Lease) Release(context.Context) error { return nil }
