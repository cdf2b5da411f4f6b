package jupyter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// The stages of a start, as [StartRequest.OnStage] gets them.
const (
	StageCreate  = "creating the kernel"
	StageConnect = "waiting for the kernel to come up"
	StageVerify  = "waiting for the kernel to answer"
)

// StartRequest says what kernel to start.
type StartRequest struct {
	// Name and Env are those of [CreateRequest].
	Name string
	Env  map[string]string
	// OnStage, if not nil, hears what is done next. It is called from the
	// goroutine that called Start.
	OnStage func(stage string)
}

const (
	// cleanUpTimeout bounds the deletion after a failed start.
	cleanUpTimeout = 8 * time.Second
	// dialAttempts is how often a handshake is tried.
	dialAttempts = 3
)

// errNoAnswer is what a start ends with when the kernel stays silent.
var errNoAnswer = errors.New("the kernel does not answer")

// errLeftBehind is in the error of a start whose kernel could not be deleted.
var errLeftBehind = errors.New("and a kernel may be left behind")

// birthAttempts is how often a kernel is created that dies before it has answered:
// servers choose its ports, and another process can take one before the kernel
// does.
const birthAttempts = 3

// errStartDied is what a start ends with when the server says so.
var errStartDied = errors.New("the kernel died while it started")

// Start creates a kernel, connects to it and returns when it answers on both
// shell and iopub. When it fails, the kernel is deleted; if that fails too, the
// error says so. A kernel that dies before it has answered is deleted, and two
// more are tried.
//
// When ctx ends, a start that is on its way goes on for a while ([Options.StartGrace]),
// until there is something that can be deleted: a request to create a kernel
// whose answer is not read leaves a kernel whose id is not known, and a server
// that must delete a kernel in the middle of its handshake damages itself (see
// hangUp).
func (c *Client) Start(ctx context.Context, r StartRequest) (*Kernel, error) {
	select {
	case c.starts <- struct{}{}:
		defer func() { <-c.starts }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other kernels to start: %w", context.Cause(ctx))
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start kernel: %w", context.Cause(ctx))
	}
	stage := r.OnStage
	if stage == nil {
		stage = func(string) {}
	}
	for attempt := 1; ; attempt++ {
		k, err := c.startOnce(ctx, r, stage)
		if err == nil || attempt == birthAttempts || !errors.Is(err, errStartDied) || errors.Is(err, errLeftBehind) || ctx.Err() != nil {
			return k, err
		}
	}
}

// startOnce is one attempt of Start.
func (c *Client) startOnce(ctx context.Context, r StartRequest, stage func(string)) (*Kernel, error) {
	stage(StageCreate)
	late, cancel := outlive(ctx, c.opts.StartGrace)
	defer cancel()
	id, err := c.createOrCleanUp(late, r)
	if err != nil {
		return nil, fmt.Errorf("create kernel: %w", err)
	}
	k, err := c.connect(late, id, stage, connection{})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return k, nil
	}
	if k != nil {
		k.hangUp(&LostError{Reason: "it did not start"})
	}
	cerr := c.cleanUp(ctx, id)
	c.claimed.Delete(id)
	if cerr != nil {
		return nil, fmt.Errorf("start kernel: %w (%w: kernel %s: %w)", err, errLeftBehind, id, cerr)
	}
	return nil, fmt.Errorf("start kernel: %w", err)
}

// outlive returns a context that ends some time after ctx does, with its cause.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	timer := make(chan *time.Timer, 1)
	stop := context.AfterFunc(ctx, func() {
		timer <- time.AfterFunc(by, func() { cancel(context.Cause(ctx)) })
	})
	return late, func() {
		if !stop() {
			(<-timer).Stop()
		}
		cancel(nil)
	}
}

// createOrCleanUp creates a kernel under an id of our choice. When it cannot
// know whether the kernel exists, it deletes that id: a server that honours
// the id has nothing left then, and one that does not offers no other way.
func (c *Client) createOrCleanUp(ctx context.Context, r StartRequest) (string, error) {
	id := messages.NewID()
	m, err := c.Create(ctx, CreateRequest{Name: r.Name, Env: r.Env, ID: id})
	switch {
	case err == nil && !usableID(m.ID):
		if cerr := c.cleanUp(ctx, id); cerr != nil {
			return "", fmt.Errorf("%w (and a kernel may be left behind: %w)", ErrBadID, cerr)
		}
		return "", ErrBadID
	case err == nil && m.Connections > 0: // it is new, and a client is connected: it is not deleted
		return "", fmt.Errorf("kernel %s: %w", m.ID, ErrShared)
	case err == nil:
		return m.ID, c.claim(m.ID)
	case surelyNotCreated(err):
		return "", err
	}
	if cerr := c.cleanUp(ctx, id); cerr != nil {
		return "", fmt.Errorf("%w (and a kernel may be left behind: %w)", err, cerr)
	}
	return "", err
}

// surelyNotCreated reports whether a failed POST has left no kernel: the server
// never saw it, or refused it. After a failure of the server it may have.
func surelyNotCreated(err error) bool {
	if ue := (*UnreachableError)(nil); errors.As(err, &ue) {
		return !ue.Sent
	}
	if se := (*StatusError)(nil); errors.As(err, &se) {
		return se.Code < 500
	}
	return false
}

// cleanUp deletes a kernel that will not be handed out, also when ctx has ended.
func (c *Client) cleanUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	return c.Delete(ctx, id)
}

// usableID says whether an id can be that of a kernel: a UUID with every server that
// there is. It becomes part of paths and messages.
func usableID(id string) bool {
	if len(id) > 128 || strings.Trim(id, ".") == "" {
		return false
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.' {
			return false
		}
	}
	return true
}

// claim makes a kernel that of one session, until its [Kernel] has hung up.
func (c *Client) claim(id string) error {
	if _, taken := c.claimed.LoadOrStore(id, true); taken {
		return fmt.Errorf("kernel %s: %w", id, ErrShared)
	}
	return nil
}
