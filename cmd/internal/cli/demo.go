package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

//go:embed demo/*.py
var demoCode embed.FS

// demoCap is how many kernels the demo's host lets live.
const demoCap = 3

func (a *app) demoCommand() *cobra.Command {
	var f console.HostFlags
	cmd := console.Command{
		Use:   "demo",
		Short: "Show sessions, failures and the supervision tree at work",
		Long: `Run a host with real kernels and show what it does: sessions that stream side by
side, rich output, an exception, a kernel that is killed and grows back, an
eviction, and a clean end; and the supervision tree while it happens.

At the end it lists what it promised. The exit code is 1 when anything of that
did not happen.`,
		Run: func(ctx context.Context, _ []string) error { return a.demo(ctx, f) },
	}.Make()
	f.Add(cmd)
	return cmd
}

// demo is one performance. Its scenes run one after the other in the goroutine
// of the command; watch is called from a goroutine of the host.
type demo struct {
	*stage
	bill *bill
	cwd  string
	news chan struct{} // has an element after changes grew

	mu      sync.Mutex
	host    *console.Host           // guarded by mu until it is set
	changes []messages.ChildChanged // guarded by mu
	pids    map[int]bool            // guarded by mu: every process that was seen
}

func (a *app) demo(ctx context.Context, f console.HostFlags) error {
	o, err := f.Options(coppice.GatewayOptions{}, coppice.Options{Env: a.Env})
	if err != nil {
		return err
	}
	env, err := coppice.Environment(ctx, o, "")
	switch {
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled}
	case err != nil:
		return console.UsageError{Err: err}
	case env.Backend == "":
		return fmt.Errorf("the demo needs kernels, and there are none: %s", env.Problem)
	}
	d := &demo{bill: newBill(), news: make(chan struct{}, 1), pids: map[int]bool{}}
	if d.cwd, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the working directory: %w", err)
	}
	d.stage = newStage(a, d.look, d.shorten)
	defer d.close()
	host, err := a.StartHost(ctx, f, console.ColdGateway, coppice.Options{MaxSessions: demoCap, OnEvent: d.watch})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.host = host
	d.mu.Unlock()
	backend, why := host.Backend()
	a.Out.Lines("backend: " + backend + " (" + why + ")")
	for _, scene := range []func(context.Context){d.sideBySide, d.rich, d.raises, d.killed, d.evicted} {
		if ctx.Err() == nil {
			scene(ctx)
		}
	}
	d.ending()
	d.close()
	a.Out.Lines("", a.Style(a.Out).Title("What was promised"))
	a.Out.Lines(render.Checks(a.Style(a.Out), d.bill.checks)...)
	switch {
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled, Err: fmt.Errorf("the demo was cut short: %w", context.Cause(ctx))}
	case !d.bill.kept():
		return &console.Exit{Code: console.Raised}
	}
	return nil
}

// shorten takes the working directory off names: all sessions share it.
func (d *demo) shorten(name string) string { return strings.ReplaceAll(name, "@"+d.cwd, "") }

// look returns the tree for the stage.
func (d *demo) look(ctx context.Context) (messages.Node, error) {
	d.mu.Lock()
	host := d.host
	d.mu.Unlock()
	if host == nil {
		return messages.Node{}, errors.New("there is no tree yet")
	}
	return host.Snapshot(ctx)
}

// watch hears what happens in the tree, and tells it but for the states that
// come and go with every call, and for single sinks.
func (d *demo) watch(e messages.Lifecycle) {
	c, ok := e.(messages.ChildChanged)
	if !ok {
		return
	}
	d.mu.Lock()
	d.changes = append(d.changes, c)
	if c.PID > 0 {
		d.pids[c.PID] = true
	}
	d.mu.Unlock()
	quiet := c.To == messages.ChildBusy || c.From == messages.ChildBusy && c.To == messages.ChildIdle || strings.Contains("/"+c.Path, "/"+sinksNode+"/")
	if !quiet {
		c.Path = d.shorten(c.Path)
		d.say(d.style.Quiet("  tree │ ") + render.Lifecycle(d.style, c) + "\n")
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// seen counts the changes so far.
func (d *demo) seen() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.changes)
}

// await waits until a change after from is the one that is looked for.
func (d *demo) await(ctx context.Context, from int, wanted func(messages.ChildChanged) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		d.mu.Lock()
		i := slices.IndexFunc(d.changes[from:], wanted)
		d.mu.Unlock()
		if i >= 0 {
			return true
		}
		select {
		case <-d.news:
		case <-ctx.Done():
			return false
		}
	}
}

// is reports whether a change is about the kernel of a session.
func (d *demo) is(c messages.ChildChanged, session string) bool {
	return strings.HasSuffix(d.shorten(c.Path), "/"+session)
}

// kernels returns the kernels of the tree by session.
func (d *demo) kernels(ctx context.Context) map[string]messages.Node {
	root, err := d.host.Snapshot(ctx)
	if err != nil {
		return nil
	}
	kernels := map[string]messages.Node{}
	var walk func(messages.Node)
	walk = func(n messages.Node) {
		if n.PID > 0 {
			d.mu.Lock()
			d.pids[n.PID] = true
			d.mu.Unlock()
		}
		if n.Kind == "kernel" {
			kernels[d.shorten(n.Name)] = n
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(root)
	return kernels
}

// ran is how a call of the demo went.
type ran struct {
	messages.Result
	err         error
	first, last time.Time // when output came
	lines       []string  // what was printed
}

// play runs a call and shows it; hear, if not nil, gets its output.
func (d *demo) play(ctx context.Context, session string, cells []messages.Cell, hear func(string)) ran {
	prefix := d.style.Quiet("  " + session + " │ ")
	drawing := render.NewRun(render.RunOptions{Style: d.style, Cells: cells, Prefix: prefix, Now: time.Now})
	var r ran
	var printed strings.Builder
	for e, err := range d.host.Session(session, coppice.In(d.cwd)).Stream(ctx, coppice.Request{Cells: cells, Timeout: time.Minute}) {
		if err != nil {
			r.err = err
			break
		}
		d.say(drawing.Event(e))
		switch e := e.(type) {
		case messages.Stream:
			if r.last = time.Now(); r.first.IsZero() {
				r.first = r.last
			}
			printed.WriteString(e.Text)
			if hear != nil {
				hear(e.Text)
			}
		case messages.Final:
			r.Result = e.Result
		}
	}
	r.lines = strings.Split(strings.TrimSpace(printed.String()), "\n")
	return r
}

// why says how a call went that should have gone otherwise.
func (r ran) why() string {
	switch {
	case r.err != nil:
		return r.err.Error()
	case r.Reason != "":
		return string(r.Outcome) + ": " + r.Reason
	default:
		return string(r.Outcome) + ", state " + string(r.State)
	}
}

// demoCell returns one of the programs of the demo as a cell.
func demoCell(title, file string) messages.Cell {
	text, err := demoCode.ReadFile("demo/" + file)
	if err != nil {
		panic(err) // it is part of the binary
	}
	return messages.Cell{Title: title, Code: string(text)}
}

// ending shuts the host down and looks whether anything is left.
func (d *demo) ending() {
	d.title(context.Background(), "The end: everything is stopped, in order")
	d.kernels(context.Background())
	report := d.host.End()
	d.say(strings.Join(render.Shutdown(d.style, report), "\n") + "\n")
	d.mu.Lock()
	defer d.mu.Unlock()
	left := 0
	for pid := range d.pids {
		if alive(pid) {
			left++
		}
	}
	d.bill.settle(promisedShutdown, report.Clean() && left == 0, fmt.Sprintf("%s in %s, %d of %s left",
		render.Number(report.Stopped, "actor"), render.Duration(report.Duration), left, render.Number(len(d.pids), "process")))
}

// alive reports whether a process exists.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return p.Signal(syscall.Signal(0)) == nil
}
