//go:build !linux

package process

import "context"

// keeper is not there on this system.
type keeper struct{}

// Close does nothing: see [Owner].
func (o *Owner) Close(context.Context) error { return nil }

// Leave does nothing: see [Owner].
func (o *Owner) Leave() {}

// start reports that a child has to be started without an owner.
func (o *Owner) start(Options) (*Process, bool, error) { return nil, false, nil }

// below is nothing on this system.
type below struct{}

func (p *Process) waitBelow() error { return nil }
