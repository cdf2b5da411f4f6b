package toolproc

import "context"

// FreePort returns a port that was not returned before.
func FreePort(ctx context.Context) (int, error) { return thePorts.free(ctx) }

// DetailOf takes the words for people out of an error's body.
var DetailOf = detailOf
