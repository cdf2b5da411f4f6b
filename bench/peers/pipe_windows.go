package peers

import (
	"context"
	"errors"
)

var errNoPipe = errors.New("the runner's descriptors do not exist on Windows")

// barePipe needs descriptors that a child inherits.
func barePipe(context.Context, Options) (times, error) {
	return times{}, errNoPipe
}

func barePipeOpener(Options) Opener {
	return func(context.Context) (Opened, error) { return Opened{}, errNoPipe }
}
