package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/telemetry"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
)

// How long the end of a host or a launcher may take: in order, in order where sessions are
// written to disk meanwhile, and in a hurry.
const (
	shutdownGrace = 15 * time.Second
	writingGrace  = 2 * time.Minute
	ShutdownHurry = 2 * time.Second
)

// What the command keeps of long outputs.
const (
	artifactAge   = 7 * 24 * time.Hour
	artifactTotal = 2 << 30
)

// KeepOutput makes artifacts outlast the command that made them: for 7 days and up to
// 2 GiB.
func KeepOutput(o coppice.Options) coppice.Options {
	o.Output.KeepArtifacts = true
	o.Output.MaxAge, o.Output.MaxTotal = artifactAge, artifactTotal
	return o
}

// Host is a coppice.Host that ends in a hurry when the process is to end.
type Host struct {
	*coppice.Host
	// Traces are those that the environment asks for; nil: none.
	Traces  *telemetry.Traces
	console *Console

	once   sync.Once
	grace  time.Duration // for its end
	report messages.ShutdownReport
	unhook func() bool
}

// StartHost starts the host of a command: with its flags and its environment, the
// options of the gateway backend if it comes to that, and those of the host. The error
// has its exit code. The caller ends the host with End.
func (c *Console) StartHost(ctx context.Context, f HostFlags, g coppice.GatewayOptions, o coppice.Options) (*Host, error) {
	o.Env = c.Env
	o, err := f.Options(g, o)
	if err != nil {
		return nil, err
	}
	o = KeepOutput(o)
	if home.SwitchedOn(c.Env, "PI_DEBUG_STARTUP") {
		o.OnStartup = func(s coppice.StartupStage) { c.Err.Lines("coppice startup: " + s.String()) }
	}
	traces, err := telemetry.Start(ctx, telemetry.Options{
		Getenv: c.Getenv, Version: c.Version, Warn: func(text string) { c.Err.Lines("coppice: " + text) },
	})
	if errors.Is(err, telemetry.ErrSettings) {
		return nil, UsageError{err}
	} else if err != nil {
		return nil, err
	}
	o.Sinks = traces.Attach(o.Sinks)
	inner, err := coppice.Start(ctx, o)
	if err != nil {
		_ = traces.End(ctx) // nothing was traced
	}
	switch {
	case errors.Is(err, kernel.ErrUnkeptLimits): // its text has the names of the library
		return nil, Usagef("the gateway backend has no limits of a session but --max-runtime and --max-files (COPPICE_MAX_RUNTIME, COPPICE_MAX_FILES); use --backend runner, or limit all of a workspace: coppice workspace create --total-memory")
	case errors.Is(err, coppice.ErrOptions):
		return nil, OptionsError(err)
	case ctx.Err() != nil:
		return nil, &Exit{Code: Cancelled}
	case err != nil:
		return nil, &Exit{Code: Lost, Err: err}
	}
	h := &Host{Host: inner, Traces: traces, console: c, grace: shutdownGrace}
	if o.Hibernate != "" && o.Hibernate != hibernate.Never {
		h.grace = writingGrace
	}
	if file := inner.TraceFile(); file != "" {
		c.Err.Lines("coppice: messages are traced to " + file)
	}
	for _, s := range inner.PassedOver() {
		c.Err.Lines(fmt.Sprintf("coppice: %s (%s) is passed over: %s; coppice env shows which Python is used", s.Name, s.Path, s.Why))
	}
	// A call that runs then ends as cancelled, and whoever waits for it goes on.
	h.unhook = context.AfterFunc(c.Hard, func() { h.shutdown() })
	return h, nil
}

// shutdown ends the host, once; it returns when that is done.
func (h *Host) shutdown() messages.ShutdownReport { return h.end(h.Host.Shutdown) }

func (h *Host) end(shutdown func(context.Context) messages.ShutdownReport) messages.ShutdownReport {
	h.once.Do(func() {
		h.console.EndingWithin(h.grace, func(ctx context.Context) {
			h.report = shutdown(ctx)
			if err := h.Traces.End(ctx); err != nil {
				h.console.Err.Lines("coppice: " + err.Error())
			}
		})
	})
	return h.report
}

// Leave ends the host, and leaves its sessions to the next one. End does nothing then.
func (h *Host) Leave() messages.ShutdownReport { return h.end(h.Host.Leave) }

// End ends the host and tells of what did not end.
func (h *Host) End() messages.ShutdownReport {
	h.unhook()
	report := h.shutdown()
	if !report.Clean() {
		h.console.Err.Lines(render.Shutdown(h.console.Style(h.console.Err), report)...)
	}
	return report
}

// Ending calls shutdown with the time that it has: 15 s in order, and 2 s from when the
// process is to end at once.
func (c *Console) Ending(shutdown func(context.Context)) { c.EndingWithin(shutdownGrace, shutdown) }

// EndingWithin is Ending with another time in order.
func (c *Console) EndingWithin(grace time.Duration, shutdown func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	hurry := make(chan struct{})
	stop := context.AfterFunc(c.Hard, func() {
		defer close(hurry)
		select {
		case <-ctx.Done():
		case <-time.After(ShutdownHurry):
			cancel()
		}
	})
	shutdown(ctx)
	cancel()
	if !stop() {
		<-hurry
	}
}
