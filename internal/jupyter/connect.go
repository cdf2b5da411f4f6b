package jupyter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// dialled is what the dialling goroutine of dialWatched returns.
type dialled struct {
	ws  *websocket.Conn
	tcp *tunedConn
	err error
}

// connection says how a kernel is connected to.
type connection struct {
	// busy says that another client may have left the kernel while its code waited for input.
	busy bool
	// session is that of an earlier client, which has left this execution; "" and nil: there is none.
	session string
	left    *execution
}

// connect dials a kernel and verifies it. With an error it may return the
// kernel as well: then its goroutines run.
func (c *Client) connect(ctx context.Context, id string, stage func(string), how connection) (*Kernel, error) {
	stage(StageConnect)
	session := cmp.Or(how.session, messages.NewID())
	for attempt := 1; ; attempt++ {
		d := c.dialWatched(ctx, id, session)
		switch {
		case d.err == nil:
			k := newKernel(c, id, session, d.ws, d.tcp, how.left)
			stage(StageVerify)
			if how.left != nil {
				return k, k.verify(ctx, chanControl, false) // shell answers when the code has ended
			}
			return k, k.verify(ctx, chanShell, how.busy)
		case errors.As(d.err, new(*LostError)):
			return nil, fmt.Errorf("%w: %w", errStartDied, d.err)
		case attempt == dialAttempts || !worthRetrying(d.err):
			return nil, fmt.Errorf("connect to kernel: %w", d.err)
		}
		if err := c.diedAtBirth(ctx, id); err != nil {
			return nil, err
		}
		pause := time.NewTimer(c.opts.VerifyEvery)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// worthRetrying reports whether a failed handshake may succeed the next time.
// Servers fail single handshakes for reasons of other connections.
func worthRetrying(err error) bool {
	if se := (*StatusError)(nil); errors.As(err, &se) {
		return se.Code >= 500
	}
	ue := (*UnreachableError)(nil)
	return errors.As(err, &ue) && !ue.Timeout
}

// dialWatched dials a kernel and meanwhile asks the server for it: a server
// holds the handshake back for a minute when the kernel never answers, also
// when its process is long dead.
func (c *Client) dialWatched(ctx context.Context, id, session string) dialled {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan dialled, 1)
	go func() {
		ws, tcp, err := c.dial(ctx, id, session)
		result <- dialled{ws, tcp, err}
	}()
	poll := time.NewTicker(min(c.opts.VerifyEvery, 250*time.Millisecond))
	defer poll.Stop()
	for {
		select {
		case d := <-result:
			return d
		case <-poll.C:
			lost := c.gone(ctx, id)
			if lost == nil {
				continue
			}
			cancel(lost)
			if d := <-result; d.ws != nil {
				_ = d.ws.Close()
			}
			return dialled{err: lost}
		}
	}
}

// diedAtBirth asks the server for a kernel that starts and returns an error when
// it is gone.
func (c *Client) diedAtBirth(ctx context.Context, id string) error {
	if lost := c.gone(ctx, id); lost != nil {
		return fmt.Errorf("%w: %w", errStartDied, lost)
	}
	return nil
}

// verify returns nil when the kernel has answered a request on a channel and its
// idle has come on iopub. The second half matters: the server subscribes to
// iopub late, and output before that is lost without a sign. left says that another client may
// have left the kernel while its code waited for input.
func (k *Kernel) verify(ctx context.Context, channel string, left bool) error {
	ctx, done := opportunity.Within(ctx, patience(k.client.opts.DialTimeout), k.client.kernels())
	defer done()
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
	// Whatever finds out first that the time is over, it is the kernel that did not answer.
	over := func(err error) error {
		if e := spent(ctx); e != nil && k.Err() == nil {
			return fmt.Errorf("%w: %w", errNoAnswer, e)
		}
		return err
	}
	again := time.NewTicker(k.client.opts.VerifyEvery)
	defer again.Stop()
	for try := 0; ; try++ {
		id, err := k.ask(ctx, channel, typeInfoRequest, answers)
		if err == nil && left && try > 0 {
			err = k.leaveAlone(ctx)
		}
		if err != nil {
			return over(err)
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
			case <-k.Done():
				return k.Err()
			case <-ctx.Done():
				return over(context.Cause(ctx))
			}
		}
	}
}
