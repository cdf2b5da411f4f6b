package jupyter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// External says why a Jupyter server cannot be used.
type External int

// What may be wrong with an external server.
const (
	ExternalOK          External = iota
	ExternalURL                  // the URL cannot be used
	ExternalToken                // it wants a token, or another one
	ExternalTimeout              // it did not answer in time
	ExternalUnreachable          // there was no connection
	ExternalAnswer               // something answers, and not as a Jupyter server
)

// externalTimeout bounds the wait for an answer.
const externalTimeout = 5 * time.Second

// AskExternal asks a Jupyter server whether it answers and takes the token. The error is
// set for all but ExternalOK, and holds no token. It waits for at most 5 s. Any
// goroutine may call it.
func AskExternal(ctx context.Context, url, token string) (External, error) {
	client, err := NewClient(Options{URL: url, Token: token})
	if err != nil {
		return ExternalURL, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, externalTimeout)
	defer cancel()
	err = client.Healthy(ctx)
	away, silent := errors.AsType[*UnreachableError](err)
	switch {
	case err == nil:
		return ExternalOK, nil
	case errors.Is(err, ErrUnauthorized):
		return ExternalToken, fmt.Errorf("external gateway at %s %w", client.URL(), ErrUnauthorized)
	case silent && away.Timeout:
		return ExternalTimeout, fmt.Errorf("external gateway at %s is not reachable (timeout)", client.URL())
	case silent:
		return ExternalUnreachable, fmt.Errorf("external gateway at %s is not reachable: %w", client.URL(), away.Err)
	default:
		return ExternalAnswer, fmt.Errorf("external gateway at %s: %w", client.URL(), err)
	}
}

// AskExternals returns nil when one of the servers can be used, else why the last
// cannot.
func AskExternals(ctx context.Context, remotes []Remote) (err error) {
	for _, r := range remotes {
		if _, err = AskExternal(ctx, r.URL, r.Token); err == nil {
			return nil
		}
	}
	return err
}
