package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// How long the end of a host may take: in order, and in a hurry.
const (
	shutdownGrace = 15 * time.Second
	shutdownHurry = 2 * time.Second
)

// host is a coppice.Host that ends in a hurry when the process shall end.
type host struct {
	*coppice.Host
	app *app

	once   sync.Once
	report messages.ShutdownReport
	unhook func() bool
}

func (a *app) startHost(ctx context.Context, o coppice.Options) (*host, error) {
	o.Env = a.env
	o = keepOutput(o)
	if v := a.getenv("PI_DEBUG_STARTUP"); v != "" && v != "0" {
		o.OnStartup = func(s coppice.StartupStage) { a.err.lines("coppice startup: " + s.String()) }
	}
	inner, err := coppice.Start(ctx, o)
	switch {
	case errors.Is(err, coppice.ErrOptions):
		return nil, usageError{err}
	case ctx.Err() != nil:
		return nil, &codeError{code: codeCancelled}
	case err != nil:
		return nil, &codeError{code: codeLost, err: err}
	}
	h := &host{Host: inner, app: a}
	if file := inner.TraceFile(); file != "" {
		a.err.lines("coppice: messages are traced to " + file)
	}
	for _, s := range inner.PassedOver() {
		a.err.lines(fmt.Sprintf("coppice: %s (%s) is passed over: %s; coppice env shows which Python is used", s.Name, s.Path, s.Why))
	}
	// A call that runs then ends as cancelled, and whoever waits for it goes on.
	h.unhook = context.AfterFunc(a.stops.hard, func() { h.shutdown() })
	return h, nil
}

// shutdown ends the host, once; it returns when that is done.
func (h *host) shutdown() messages.ShutdownReport {
	h.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		defer cancel()
		hurry := make(chan struct{})
		stop := context.AfterFunc(h.app.stops.hard, func() {
			defer close(hurry)
			select {
			case <-ctx.Done():
			case <-time.After(shutdownHurry):
				cancel()
			}
		})
		h.report = h.Host.Shutdown(ctx)
		cancel()
		if !stop() {
			<-hurry
		}
	})
	return h.report
}

// end ends the host and tells of what did not end.
func (h *host) end() messages.ShutdownReport {
	h.unhook()
	report := h.shutdown()
	if !report.Clean() {
		h.app.err.lines(render.Shutdown(h.app.style(h.app.err), report)...)
	}
	return report
}
