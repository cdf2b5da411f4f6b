//go:build !linux

package peers

import (
	"context"
	"net"
)

// dialTuned has nothing to tune.
func dialTuned(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}
