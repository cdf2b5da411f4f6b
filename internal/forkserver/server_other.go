//go:build !unix

package forkserver

import (
	"context"
	"os"

	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Server is a fork server. This system has no fork servers.
type Server struct{}

// Launch returns ErrUnsupported on this system.
func Launch(context.Context, Options) (*Server, error) { return nil, ErrUnsupported }

// PID returns 0.
func (*Server) PID() int { return 0 }

// Identity returns the zero value.
func (*Server) Identity() process.Identity { return process.Identity{} }

// Subject is nobody.
func (*Server) Subject() opportunity.Subject { return opportunity.Unknown{} }

// Answers returns false.
func (*Server) Answers() bool { return false }

// Python returns "".
func (*Server) Python() string { return "" }

// Warm returns nil.
func (*Server) Warm() <-chan struct{} { return nil }

// Failed returns nil.
func (*Server) Failed() map[string]string { return nil }

// Done returns nil.
func (*Server) Done() <-chan struct{} { return nil }

// Err returns ErrUnsupported.
func (*Server) Err() error { return ErrUnsupported }

// Fork returns ErrUnsupported.
func (*Server) Fork(*cgroup.Group, *ndjson.User) (*Child, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Server) Close(context.Context) error { return nil }

// Empty does nothing.
func (*Server) Empty(context.Context) {}

// Spawn returns ErrUnsupported on this system.
func Spawn(context.Context, Options, *cgroup.Group, *ndjson.User) (*Child, error) {
	return nil, ErrUnsupported
}

// Adopt returns ErrUnsupported on this system.
func Adopt(process.Identity, []*os.File) (*Child, error) { return nil, ErrUnsupported }

// HandOver returns ErrUnsupported on this system.
func (*Child) HandOver(*os.File) error { return ErrUnsupported }

// Copies returns ErrUnsupported on this system.
func (*Child) Copies([]*cgroup.Group) ([]*Child, error) { return nil, ErrUnsupported }
