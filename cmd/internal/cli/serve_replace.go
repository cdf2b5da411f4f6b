package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/handover"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// A server that was replaced hands on what comes over connections of before: for so long, and
// for as long as somebody waits for an answer, which is longest a minute.
const (
	lingers = 2 * time.Second
	longest = 70 * time.Second
)

// handed is what a successor has to know how to take from a server of this program, and what one
// of it knows. What is on disk stays where it is: the successor has to read it.
func (f serveFlags) handed(env []string) []string {
	list := []string{"listeners", handover.Sessions, fmt.Sprintf("executions/%d", httpapi.ExportVersion)}
	if f.hibernate.wanted(env) {
		list = append(list, fmt.Sprintf("sessions on disk/%d (--hibernate)", store.Version))
	}
	return list
}

// addReplace adds the flag to a command.
func (f *serveFlags) addReplace(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.replace, "replace", false, "with --keep-sessions: take over from the server that runs, if one does, its address, token, sessions and executions, without a loss; it goes on when this one cannot")
}

// unhanded names what the server does that none can take over from it; "": nothing.
func (f serveFlags) unhanded() string {
	var list []string
	for _, one := range []struct {
		is   bool
		name string
	}{
		{f.e2b, "--e2b"},
		{f.e2bDebug, "--e2b-debug"},
		{f.jupyter, "--jupyter"},
		{f.mcp.on, "--mcp"},
		{f.listen.addr != "", "--listen"},
		{f.fleet.servers != "", "--fleet"},
	} {
		if one.is {
			list = append(list, one.name)
		}
	}
	return strings.Join(list, ", ")
}

// succeed asks the server that runs, as r says, to be replaced by this one; nil: none runs.
func (a *app) succeed(ctx context.Context, f serveFlags, path string, r client.Record) (*inheritance, error) {
	const only = "; without --replace, end that server and start this one"
	if !f.keep.wanted(a.Env) {
		return nil, console.Usagef("--replace needs --keep-sessions")
	}
	if what := f.unhanded(); what != "" {
		return nil, console.Usagef("--replace: nothing takes over what %s serves or keeps%s", what, only)
	}
	if f.Backend == "gateway" {
		return nil, console.Usagef("--replace: kernels of the gateway backend end with their server; use --backend runner")
	}
	if !r.Runs() {
		return nil, nil //nolint:nilnil // there is nothing to take over
	}
	at := strings.TrimPrefix(r.URL, "http://")
	if _, port, err := net.SplitHostPort(f.addr); f.addr != httpserver.DefaultAddr && f.addr != at && (err != nil || port != "0") {
		return nil, console.Usagef("--replace takes the address of the server that runs, %s: leave out --addr %s", at, f.addr)
	}
	if token := a.Token("COPPICE_TOKEN"); token != "" && token != r.Token {
		return nil, console.Usagef("--replace takes the token of the server that runs: COPPICE_TOKEN is another one")
	}
	s, err := handover.Ask(ctx, handover.SuccessorOptions{
		Dir: runFolder(path), PID: r.PID, Start: r.Start, Token: r.Token, Program: version.Read().Version, Knows: f.handed(a.Env),
	})
	switch {
	case errors.Is(err, handover.ErrEnded):
		return nil, nil //nolint:nilnil // what it kept is taken over as that of any server that was killed
	case errors.Is(err, handover.ErrNone):
		return nil, fmt.Errorf("%w: process %d at %s was started without --keep-sessions, or is of an earlier version%s", err, r.PID, r.URL, only)
	case err != nil:
		return nil, fmt.Errorf("process %d at %s: %w", r.PID, r.URL, err)
	}
	in := &inheritance{token: r.Token, cwd: s.Given().Cwd, owns: s.Owner, serves: s.Taken, done: s.Close}
	in.listeners.Address = s.Files()[0]
	if len(s.Files()) > 1 {
		in.listeners.Socket = s.Files()[1]
	}
	in.await = func(ctx context.Context) error {
		left, err := s.Take(ctx, func(why string) { a.Err.Lines("coppice: the server that runs waits: " + why) })
		in.begin(left)
		return err
	}
	return in, nil
}

// runFolder is where sockets of a server are, by the path of its record.
func runFolder(record string) string { return filepath.Join(filepath.Dir(record), "run") }

// leaving is what a server leaves to one that replaces it.
type leaving struct {
	app    *app
	host   *console.Host
	api    *httpapi.API
	server *httpserver.Server
	gate   *httpserver.Gate
	offer  *handover.Offer // nil: it cannot be replaced
	folder string
	left   *os.File // what was written down, once it has left
	served bool     // all that a start takes was there

	end   context.CancelFunc // of run
	ended chan error
}

// offers has a server be replaced, if it can be. The caller closes it.
func (l *leaving) offers(f serveFlags, path string) {
	l.folder = runFolder(path)
	if !handover.Supported || !f.keep.wanted(l.app.Env) {
		return
	}
	var err error
	l.offer, err = handover.Begin(handover.Options{
		Dir: l.folder, Token: l.server.Token(), Program: version.Read().Version, Needs: f.handed(l.app.Env), Given: handover.Given{Cwd: l.api.Cwd()},
		Refuse: func() string {
			if what := f.unhanded(); what != "" {
				return "nothing takes over what " + what + " serves or keeps; end it, and start the other"
			}
			return l.bound()
		},
		Listeners: func() ([]*os.File, error) {
			in, err := l.server.Bequeath()
			return slices.DeleteFunc([]*os.File{in.Address, in.Socket}, func(f *os.File) bool { return f == nil }), err
		},
		Leave: l.leave,
	})
	if err != nil {
		l.app.Err.Lines("coppice: this server cannot be replaced while it runs: " + err.Error())
	}
}

// bound says what no other server can take over, and does not end by itself; "": nothing.
func (l *leaving) bound() string {
	lasting, _ := l.api.Bound()
	switch {
	case len(lasting) > 0:
		return "nothing takes over " + strings.Join(lasting, ", ") + ": end them, or the server"
	case !l.host.Keeps():
		return "its sessions do not outlive it: the process that keeps them is not there"
	}
	return ""
}

// leave leaves everything to another process, or nothing: see handover.Options.Leave.
func (l *leaving) leave(ctx context.Context) (*os.File, error) {
	if err := l.free(); err != nil {
		return nil, err // nobody is held up for it
	}
	l.server.Pause()
	l.gate.Hold()
	l.api.Hold()
	file, pins, err := l.held(ctx)
	if err != nil {
		l.api.Release()
		l.gate.Release()
		l.server.Resume()
		return nil, err
	}
	l.server.Yield()
	l.host.Leave()
	if err := l.api.Export(context.WithoutCancel(ctx), file, pins); err != nil {
		l.app.Err.Lines("coppice: executions that have ended are not handed over: " + err.Error())
		_ = file.Close()
		return nil, nil //nolint:nilnil // the sessions are
	}
	l.left = file
	return file, nil
}

// free returns an error when something cannot be left.
func (l *leaving) free() error {
	if why := l.bound(); why != "" {
		return &handover.RefusedError{Reason: why}
	}
	if _, passing := l.api.Bound(); len(passing) > 0 {
		return &handover.BusyError{Reason: strings.Join(passing, "; ")}
	}
	return nil
}

// held makes sure, while nobody is let in, that everything can be left, and says so to the
// executions. It returns which sessions are pinned.
func (l *leaving) held(ctx context.Context) (*os.File, []messages.SessionKey, error) {
	if err := l.gate.EmptySoon(ctx); err != nil {
		return nil, nil, &handover.BusyError{Reason: err.Error()}
	}
	if err := l.free(); err != nil {
		return nil, nil, err
	}
	file, err := os.CreateTemp(l.folder, "left-*") // with mode 0600
	if err != nil {
		return nil, nil, fmt.Errorf("write down what is left: %w", err)
	}
	var pins []messages.SessionKey
	if err = os.Remove(file.Name()); err == nil { // it is there for as long as somebody has it open
		pins, err = l.api.Leaving(ctx)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, pins, nil
}

// gone has the server once it has left. It is nil for one that cannot be replaced.
func (l *leaving) gone() <-chan *handover.Left {
	if l.offer == nil {
		return nil
	}
	return l.offer.Gone()
}

func (l *leaving) close() error {
	if l.offer == nil {
		return nil
	}
	return l.offer.Close()
}

// run serves, and tells on ended how that has ended. It is called once.
func (l *leaving) run(ctx context.Context) {
	ctx, l.end = context.WithCancel(ctx)
	l.ended = make(chan error, 1)
	go func() { l.ended <- l.server.Serve(ctx) }() // joined by ended
}

// relay hands on what was held, and what comes, to who serves at the address now.
func (l *leaving) relay() {
	l.gate.Pass(httpserver.Relay(strings.TrimPrefix(l.server.URL(), "http://"), lingers))
}

// linger hands on for as long as somebody waits for an answer, but for those who read what
// does not end.
func (l *leaving) linger(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, longest)
	defer done()
	select {
	case <-time.After(lingers):
		_ = l.gate.Empty(ctx) // who is cut off asks again
	case <-ctx.Done():
	}
}

// after is what comes after the server has left: nothing, once the other one serves; or what
// this process goes on with, when that one has ended before.
func (l *leaving) after(ctx context.Context, to *handover.Left) (*inheritance, error) {
	err := to.Wait(ctx)
	if errors.Is(err, handover.ErrEnded) {
		l.app.Err.Lines(fmt.Sprintf("coppice: process %d was to replace this server, and has ended: this one goes on", to.PID()))
		return l.takeBack(ctx)
	}
	if l.left != nil {
		_ = l.left.Close()
	}
	l.relay() // also when this process is to end: everything is the other's
	if err == nil {
		l.app.Err.Lines(fmt.Sprintf("coppice: process %d has replaced this server", to.PID()))
		l.linger(ctx)
	}
	return nil, l.over()
}

// over ends the server.
func (l *leaving) over() error {
	l.end()
	if err := <-l.ended; err != nil && !errors.Is(err, httpserver.ErrCut) { // who was cut off asks again
		return err
	}
	return nil
}

// takeBack returns what this process goes on with.
func (l *leaving) takeBack(ctx context.Context) (*inheritance, error) {
	in := &inheritance{token: l.server.Token(), cwd: l.api.Cwd()}
	in.begin(l.left)
	var err error
	if in.listeners, err = l.server.Bequeath(); err != nil {
		return nil, errors.Join(err, l.over())
	}
	var handsOn sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	in.serves = func() {
		l.relay()
		handsOn.Go(func() { // ends with done
			l.linger(ctx)
			l.end()
		})
	}
	in.done = func() {
		stop()
		if err := l.over(); err != nil {
			l.app.Err.Lines("coppice: " + err.Error())
		}
		handsOn.Wait()
	}
	return in, nil
}

// successor starts the program that stands at the path of this one, with the same arguments,
// to replace this server.
func (a *app) successor() {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		a.Err.Lines("coppice: start the program that is to replace this one: " + err.Error())
		return
	}
	args := slices.Clone(os.Args)
	if !slices.Contains(args, "--replace") {
		args = append(args, "--replace")
	}
	cmd := &exec.Cmd{Path: path, Args: args, Env: a.Env, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := cmd.Start(); err != nil {
		a.Err.Lines("coppice: start the program that is to replace this one: " + err.Error())
		return
	}
	a.Err.Lines(fmt.Sprintf("coppice: process %d is to replace this one", cmd.Process.Pid))
	go func() { _ = cmd.Wait() }() // ends with it, at the latest with this process
}
