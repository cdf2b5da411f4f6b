package console

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
)

// serverPatience is how long a command waits for a server to say that it is there.
const serverPatience = 5 * time.Second

// WithServer does something with the client of the `coppice serve` that runs. The error is
// do's, or says that no server was found: see [ServerFailure].
func (c *Console) WithServer(do func(*client.Client) error) error {
	found, err := client.Find(client.FindOptions{Env: c.Env, Client: client.Options{Patience: serverPatience}})
	if err != nil {
		return err
	}
	defer found.Close()
	return do(found)
}

// ServerFailure ends a command that a server said no to, or that found none: it is what
// Command.Errors is for those who use WithServer.
func ServerFailure(err error) error {
	switch {
	case Decided(err):
		return err
	case errors.Is(err, client.ErrNoServer):
		return fmt.Errorf("%w: coppice serve", err)
	case badRequest(err):
		return &Exit{Code: Usage, Err: err}
	default:
		return err
	}
}

// RunFailure is ServerFailure for a command that runs code: a workspace that is not there makes its
// command line a wrong one, since the other codes say what became of the code.
func RunFailure(err error) error {
	if WrongRequest(err) && !Decided(err) {
		return &Exit{Code: Usage, Err: err}
	}
	return ServerFailure(err)
}

// badRequest reports whether err is a server's that found the request itself wrong.
func badRequest(err error) bool {
	told, is := errors.AsType[*client.Error](err)
	return is && told.Code == "bad_request"
}

// WrongRequest reports whether err is a server's that found the request itself wrong, or the name
// of a workspace in it, for a command that runs code.
func WrongRequest(err error) bool {
	told, is := errors.AsType[*client.Error](err)
	return badRequest(err) || is && told.Code == "not_found" && strings.Contains(told.Message, "workspace")
}
