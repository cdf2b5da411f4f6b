package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

// healthTimeout is how long a server may take to answer coppice health.
const healthTimeout = 10 * time.Second

// healthPause is how long health --wait leaves between two questions.
const healthPause = 100 * time.Millisecond

type healthFlags struct {
	url     string
	timeout time.Duration
	wait    time.Duration
	json    bool
	ready   bool
	export  string
}

// healthReport is what health --json prints.
type healthReport struct {
	Healthy bool   `json:"healthy"`
	URL     string `json:"url,omitempty"`
	// Server is what the server says of itself, nil when it did not answer.
	Server *client.Health `json:"server,omitempty"`
	// Problem is why it is not healthy.
	Problem string `json:"problem,omitempty"`
	// exports are the lines of --export.
	exports []string
}

// errNotServed is what no waiting changes.
var errNotServed = errors.New("does not serve clients")

func (a *app) healthCommand() *cobra.Command {
	f := healthFlags{timeout: healthTimeout}
	cmd := console.Command{
		Use:   "health",
		Short: "Ask a running server whether it takes requests",
		Long: `Ask the coppice serve that runs whether it takes requests, for the health check of a
container or a service. One line says how it is, and the exit code is 1 when it does not
answer in time, when it is about to end, or when none runs.

--ready asks whether anything may begin there, too: a node of a fleet that is draining, or that
has lost touch with the directory of the fleet, is well, and not ready. It is for what sends
requests to a server; what ends one that is not well does without, or it would end sessions
that are kept.

--wait asks again and again, for so long at most, until the server is well: a script that has
started one goes on once it takes requests.

--export prints what the SDKs of e2b, or the clients of jupyter, have to find in their environment,
the token among it, for a shell to read, once the server is well.

--url asks the server at an address, with the token of COPPICE_TOKEN. Without its token
a server says that it lives, and no more.`,
		Example: `  coppice health
  coppice health --ready
  coppice serve & coppice health --wait 30s
  eval "$(coppice health --export e2b)"
  coppice health --url http://127.0.0.1:7788 --timeout 2s --json`,
		Errors: console.ServerFailure,
		Run:    func(ctx context.Context, _ []string) error { return a.health(ctx, f) },
	}.Make()
	cmd.Flags().StringVar(&f.url, "url", "", "the address of the server (default: the one that runs for this user)")
	cmd.Flags().Var((*console.Time)(&f.timeout), "timeout", "how long it may take to answer: seconds, or a time such as 2s")
	cmd.Flags().Var((*console.Time)(&f.wait), "wait", "how long to wait for a server that is well: seconds, or a time such as 30s (default: not at all)")
	cmd.Flags().BoolVar(&f.ready, "ready", false, "want it to take requests that begin something, too")
	cmd.Flags().StringVar(&f.export, "export", "", "print the environment of other clients, for a shell: e2b or jupyter")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) health(ctx context.Context, f healthFlags) error {
	if f.timeout <= 0 {
		return console.Usagef("--timeout must be longer than nothing, not %s", f.timeout)
	}
	r := healthReport{URL: f.url}
	if f.export != "" && (f.json || clientKinds[f.export].path == "") {
		return console.Usagef("--export prints what a shell reads, for e2b or jupyter, not %q, and not with --json", f.export)
	}
	if f.wait < 0 {
		return console.Usagef("--wait must not be less than nothing, as %s is", f.wait)
	}
	err := a.awaitHealth(ctx, f, &r)
	if ctx.Err() != nil {
		return &console.Exit{Code: console.Cancelled}
	}
	if _, wrong := errors.AsType[console.UsageError](err); wrong {
		return err
	}
	r.Healthy = err == nil
	switch {
	case f.json:
		if err != nil {
			r.Problem = err.Error()
			err = &console.Exit{Code: console.Raised}
		}
		return errors.Join(a.WriteJSON(r), err)
	case errors.Is(err, client.ErrNoServer):
		return err
	case err != nil:
		return &console.Exit{Code: console.Raised, Err: err}
	}
	if f.export != "" {
		a.Out.Lines(r.exports...)
		return nil
	}
	a.Out.Lines(healthLine(r))
	return nil
}

// awaitHealth asks until the server is well, once where nobody waits for that.
func (a *app) awaitHealth(ctx context.Context, f healthFlags, r *healthReport) error {
	for until := time.Now().Add(f.wait); ; {
		err := a.askHealth(ctx, f, r)
		left := time.Until(until)
		if _, wrong := errors.AsType[console.UsageError](err); err == nil || wrong || errors.Is(err, errNotServed) || f.wait == 0 {
			return err
		}
		if left <= 0 {
			return fmt.Errorf("after %s: %w", f.wait, err)
		}
		f.timeout = min(f.timeout, max(left, healthPause).Round(time.Millisecond))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(left, healthPause)):
		}
	}
}

// askHealth fills in where the server is and what it says.
func (a *app) askHealth(ctx context.Context, f healthFlags, r *healthReport) error {
	c, err := a.healthClient(f.url)
	if err != nil {
		return err
	}
	defer c.Close()
	r.URL, r.Server = c.URL(), nil
	asking, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	h, err := c.Health(asking)
	switch {
	case asking.Err() != nil:
		return fmt.Errorf("the server at %s has not answered in %s", r.URL, f.timeout)
	case err != nil:
		return fmt.Errorf("the server at %s does not say that it is well: %w", r.URL, err)
	}
	r.Server = &h
	if h.Status != "ok" {
		return fmt.Errorf("the server at %s is %s: it takes no more requests", r.URL, h.Status)
	}
	if k, asked := clientKinds[f.export]; asked {
		switch there, err := c.Serves(asking, k.path); {
		case err != nil:
			return fmt.Errorf("ask the server at %s whether it serves clients of %s: %w", r.URL, f.export, err)
		case !there:
			return fmt.Errorf("the server at %s %w of %s: start it with coppice serve --%s", r.URL, errNotServed, f.export, f.export)
		}
		if c.Token() == "" {
			return console.Usagef("--export prints a token, and there is none: set COPPICE_TOKEN to that of the server at %s", r.URL)
		}
		r.exports = k.exports(strings.TrimRight(r.URL, "/"), c.Token())
	}
	if !f.ready {
		return nil
	}
	if err := c.Ready(asking); err != nil {
		return fmt.Errorf("the server at %s lets nothing begin at the moment: it is about to end, or a node of a fleet that is draining or suspended: %w", r.URL, err)
	}
	return nil
}

// healthClient is the client of the server at an address, or of the one that runs. It
// asks once: whoever checks the health of a server does so again.
func (a *app) healthClient(address string) (*client.Client, error) {
	if err := a.CheckToken("COPPICE_TOKEN"); err != nil {
		return nil, err
	}
	o := client.Options{URL: address, Token: a.Token("COPPICE_TOKEN"), Patience: -1}
	if address == "" {
		return client.Find(client.FindOptions{Env: a.Env, Client: o})
	}
	c, err := client.New(o)
	if err != nil {
		return nil, console.UsageError{Err: fmt.Errorf("--url: %w", err)}
	}
	return c, nil
}

// healthLine is a healthy server as one line.
func healthLine(r healthReport) string {
	h := r.Server
	if h.Version == "" { // it says more to those who have its token
		return "ok: the server at " + r.URL + " lives"
	}
	line := fmt.Sprintf("ok: process %d at %s, version %s, %s backend, %s, %s", h.PID, r.URL, h.Version, h.Backend,
		render.Number(h.Sessions, "session"), render.Number(h.Executions, "execution"))
	if h.Hibernated > 0 {
		line += fmt.Sprintf(", %d on disk", h.Hibernated)
	}
	return line
}
