package handover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/estate"
)

// Version is that of the protocol. A server and a successor of two versions refuse each other.
const Version = 1

// Sessions names the form in which sessions and the calls that run in them are kept, of which
// a successor has to know the version, for Options.Needs.
var Sessions = fmt.Sprintf("sessions/%d", estate.Version)

// Errors that callers decide by.
var (
	// ErrUnsupported: this system cannot hand a server over.
	ErrUnsupported = errors.New("a server cannot be replaced while it runs on this system")
	// ErrNone: nobody hears successors there.
	ErrNone = errors.New("the server that runs cannot be replaced")
	// ErrEnded: the other process has ended.
	ErrEnded = errors.New("the other server has ended")
)

// RefusedError says why a server is not handed over. Nothing has moved.
type RefusedError struct {
	// Reason is a clause for people; it holds no token.
	Reason string
}

// Error says so.
func (e *RefusedError) Error() string { return "the server is not replaced: " + e.Reason }

func refusedf(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// BusyError says what holds a server at the moment. Nothing has moved.
type BusyError struct {
	// Reason is a clause for people.
	Reason string
}

// Error says so.
func (e *BusyError) Error() string { return "the server cannot be left now: " + e.Reason }

// Given is what a successor is told of the server, besides its listeners.
type Given struct {
	// Cwd is the working directory of sessions that name none.
	Cwd string `json:"cwd"`
}

// Options make an Offer. All fields but Refuse and Logger are required.
type Options struct {
	// Dir is a folder of this user alone, in which the socket is.
	Dir string
	// Token is what a successor has to know.
	Token string
	// Program is the version of this one, for people.
	Program string
	// Needs is what a successor has to know how to take: names that carry a version.
	Needs []string
	// Given is what it is told.
	Given Given
	// Refuse says why this server cannot be replaced. nil or "": it can.
	Refuse func() string
	// Listeners returns copies of the listeners, which the offer closes.
	Listeners func() ([]*os.File, error)
	// Leave leaves everything to the successor, and returns what is known of it, for the
	// successor to read from the beginning; nil: nothing could be written down. An error is a
	// *BusyError or a *RefusedError, or another one: the server has not left then, and goes on.
	// ctx ends with the offer.
	Leave func(ctx context.Context) (*os.File, error)
	// Logger hears of successors. nil: it is not logged.
	Logger *slog.Logger
}

// SuccessorOptions make a Succession. All fields are required.
type SuccessorOptions struct {
	// Dir is the folder of the socket.
	Dir string
	// PID and Start name the process that is to be replaced.
	PID   int
	Start string
	// Token is that of the server, Program the version of this one.
	Token, Program string
	// Knows is what this program can take, as in Options.Needs.
	Knows []string
}

// SocketFile is where a server with this process hears successors, in its folder.
func SocketFile(dir string, pid int) string {
	return filepath.Join(dir, fmt.Sprintf("handover-%d.sock", pid))
}

// message is one of the protocol. Which members are set depends on Kind.
type message struct {
	Kind    kind     `json:"kind"`
	Version int      `json:"version,omitempty"`
	Program string   `json:"program,omitempty"`
	Knows   []string `json:"knows,omitempty"`
	Token   string   `json:"token,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Start   string   `json:"start,omitempty"`
	Given   *Given   `json:"given,omitempty"`
	Reason  string   `json:"reason,omitempty"`

	files []*os.File
}

type kind string

// The kinds of messages, see the steps.
const (
	hello   kind = "hello"
	offer   kind = "offer"
	refused kind = "refused"
	take    kind = "take"
	busy    kind = "busy"
	left    kind = "left"
	mine    kind = "mine"
)

func (m message) close() {
	for _, f := range m.files {
		_ = f.Close()
	}
}
