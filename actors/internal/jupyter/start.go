package jupyter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"github.com/coppice-run/coppice/messages"
)

// The stages of a start, as [StartRequest.OnStage] is told of them.
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
	// OnStage, if not nil, is told what is done next. It is called from the
	// goroutine that called Start.
	OnStage func(stage string)
}

const (
	// createGrace is how long a request to create a kernel goes on after the
	// caller left: its answer names what must be deleted.
	createGrace = 5 * time.Second
	// cleanUpTimeout bounds the deletion after a failed start.
	cleanUpTimeout = 8 * time.Second
)

// errNoAnswer is what a start ends with when the kernel stays silent.
var errNoAnswer = errors.New("the kernel does not answer")

// errStartDied is what a start ends with when the server says so.
var errStartDied = errors.New("the kernel died while it started")

// Start creates a kernel, connects to it and returns when it answers on both
// shell and iopub. ctx bounds it. When it fails, the kernel is deleted; if
// that fails too, the error says so.
func (c *Client) Start(ctx context.Context, r StartRequest) (*Kernel, error) {
	select {
	case c.starts <- struct{}{}:
		defer func() { <-c.starts }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other kernels to start: %w", context.Cause(ctx))
	}
	stage := r.OnStage
	if stage == nil {
		stage = func(string) {}
	}
	stage(StageCreate)
	id, err := c.createOrCleanUp(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("create kernel: %w", err)
	}
	k, err := c.connect(ctx, id, stage)
	if err == nil {
		return k, nil
	}
	if k != nil {
		k.lose(&LostError{Reason: "it did not start"})
		k.loops.Wait()
	}
	if cerr := c.cleanUp(ctx, id); cerr != nil {
		return nil, fmt.Errorf("start kernel: %w (and kernel %s may be left behind: %v)", err, id, cerr)
	}
	return nil, fmt.Errorf("start kernel: %w", err)
}

// createOrCleanUp creates a kernel under an id of our choice. When it cannot
// know whether the kernel exists, it deletes that id: a server that honours
// the id has nothing left then, and one that does not offers no other way.
func (c *Client) createOrCleanUp(ctx context.Context, r StartRequest) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	id := messages.NewID()
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(createGrace, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(detached, func() { t.Stop() })
	})
	defer stop()

	m, err := c.Create(detached, CreateRequest{Name: r.Name, Env: r.Env, ID: id})
	switch {
	case err == nil && ctx.Err() == nil:
		return m.ID, nil
	case err == nil:
		id, err = m.ID, context.Cause(ctx)
	case surelyNotCreated(err):
		return "", err
	}
	if cerr := c.cleanUp(ctx, id); cerr != nil {
		return "", fmt.Errorf("%w (and a kernel may be left behind: %v)", err, cerr)
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

// cleanUp deletes a kernel that nobody will get, also when ctx has ended.
func (c *Client) cleanUp(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	return c.Delete(ctx, id)
}

// dialled is what the dialling goroutine of connect returns.
type dialled struct {
	ws  *websocket.Conn
	tcp *tunedConn
	err error
}

// connect dials a kernel and verifies it. With an error it may return the
// kernel as well: then its goroutines run.
func (c *Client) connect(ctx context.Context, id string, stage func(string)) (*Kernel, error) {
	stage(StageConnect)
	session := messages.NewID()
	dctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan dialled, 1)
	go func() {
		ws, tcp, err := c.dial(dctx, id, session)
		result <- dialled{ws, tcp, err}
	}()

	// A server holds the handshake back for a minute when the kernel never
	// answers, also when its process is long dead: so ask it meanwhile.
	poll := time.NewTicker(min(c.opts.VerifyEvery, 250*time.Millisecond))
	defer poll.Stop()
	for {
		select {
		case d := <-result:
			if d.err != nil {
				return nil, fmt.Errorf("connect to kernel: %w", d.err)
			}
			k := newKernel(c, id, session, d.ws, d.tcp)
			stage(StageVerify)
			return k, k.verify(ctx)
		case <-poll.C:
			if err := c.diedAtBirth(dctx, id); err != nil {
				cancel(err)
				if d := <-result; d.ws != nil {
					_ = d.ws.Close()
				}
				return nil, err
			}
		}
	}
}

// diedAtBirth asks the server for the kernel and returns an error when it is
// gone. When the server does not answer, that proves nothing.
func (c *Client) diedAtBirth(ctx context.Context, id string) error {
	m, err := c.Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return &LostError{Reason: errStartDied.Error(), Err: err}
	case err == nil && m.ExecutionState == "dead":
		return &LostError{Reason: errStartDied.Error()}
	}
	return nil
}

// verify returns nil when the kernel has answered a request on shell and its
// idle has come on iopub. The second half matters: the server subscribes to
// iopub late, and output before that is lost without a sign.
func (k *Kernel) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, k.client.opts.DialTimeout, errNoAnswer)
	defer cancel()
	// Every request can bring two answers. Those of requests that find no room
	// are not needed: one request with both is enough.
	answers := make(chan answer, 64)
	type seen struct {
		reply, idle string // sessions
		info        []byte
	}
	asked := map[string]*seen{}
	defer func() {
		for id := range asked {
			k.forget(id)
		}
	}()
	again := time.NewTicker(k.client.opts.VerifyEvery)
	defer again.Stop()
	for {
		id, err := k.ask(ctx, chanShell, typeInfoRequest, answers)
		if err != nil {
			return err
		}
		asked[id] = &seen{}

	wait:
		for {
			select {
			case a := <-answers:
				s := asked[a.id]
				if a.idle {
					s.idle = a.session
				} else {
					s.reply, s.info = a.session, a.content
				}
				if s.info == nil || s.idle == "" || s.idle != s.reply {
					continue
				}
				info, err := decodeInfo(s.info)
				if err != nil {
					return err
				}
				k.info = info
				k.mu.Lock()
				k.kernelSession = s.reply
				k.mu.Unlock()
				return nil
			case <-again.C:
				if err := k.client.diedAtBirth(ctx, k.id); err != nil {
					return err
				}
				break wait
			case <-k.done:
				return k.Err()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
