package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/workspace"
)

// serveFlags are those of serve.
type serveFlags struct {
	console.HostFlags
	addr      string
	tools     string
	cwd       string
	sessions  int
	places    workspace.SetOptions
	idle      time.Duration
	timeout   console.CallTimeout
	hibernate hibernation
	saved     savedBounds
	keep      keeping
	replace   bool
	warmMax   int
	budget    int
	developer bool
	json      bool
	open      bool
	e2b       bool
	e2bDebug  bool
	jupyter   bool
	mcp       mcpServing
	listen    listening
	fleet     fleetFlags
	retention httpapi.Retention
	member    *membership // nil: the server is in no fleet
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := console.Command{
		Use:   "serve",
		Short: "Keep sessions and tools alive and serve them over HTTP on the loopback interface",
		Long: `Serve sessions, and the tools of a folder, over HTTP: on the loopback interface
and on a Unix socket, for this user alone. "coppice run --session" and "coppice
sessions" use a server that runs, so that variables stay between commands.

Every request has to carry a token (Authorization: Bearer ...): that of
COPPICE_TOKEN, or a new one. Address and token are written to
~/.coppice/serve.json, which only its user can read and where the other commands
find them. GET /api/openapi.json describes the API. The address itself is a page
that shows the supervision tree as it lives: on a terminal serve prints a link that
signs in, and --open opens it. coppice top is the same in a terminal.

With --hibernate lossless or lossy, a session that has no kernel any more is kept on
disk, also over the end of the server: its next call restores it, and the result lists
what is kept, lost and changed. "coppice sessions hibernate" does it at once.

With --keep-sessions, sessions outlive a server that is killed or crashes, with what
runs in them: the next server with the same home takes them over within a minute, and has
the executions under their ids, with events that have the same numbers. An interrupt still
ends all of them.

With --keep-sessions --replace, it takes over from the server that runs, as for an upgrade:
address, token, sessions, calls that run and executions, without a loss. That one goes on
until this one is ready, and when this one fails or does not understand it. SIGUSR2 has a
server start the program at its own path to that end.

With --e2b, the SDKs of E2B work with this server as they are: its sandboxes are
workspaces here. serve prints the variables that they read. With --e2b-debug, they work
with E2B_DEBUG=true alone, which sends no token: everyone on this machine can run code as
you then. With --jupyter, clients of Jupyter Server work: its kernels are sessions here.
serve prints their address. With --mcp, agents use it over the Model Context Protocol, at
/mcp with the token of the server, as "coppice mcp --http" serves it.

With --listen, other machines use it too, over TLS, with tokens that belong to tenants (see
coppice token): each tenant has a host of its own. Without it, nothing is reached from
elsewhere.

GET /healthz and /readyz need no token, for what watches over processes: the second
answers 503 once the server is asked to end.

One server runs for a home directory (COPPICE_HOME). An interrupt ends it, and all
sessions and tools with it: what runs is cancelled, and whoever waits for it learns so;
a second interrupt waits for nothing.`,
		Example: `  coppice serve &
  coppice health --wait 30s
  coppice run --session work -c 'x = 40'
  coppice run --session work -c 'x + 2'
  coppice sessions list
  coppice serve --listen 0.0.0.0:7443 --tls-cert cert.pem --tls-key key.pem --tokens ~/.coppice/tokens.json`,
		Run: func(ctx context.Context, _ []string) error { return a.serve(ctx, f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", httpserver.DefaultAddr, "the loopback address to listen on; port 0 takes a free one")
	flags.StringVar(&f.tools, "tools", "", "the folder of tools (default: COPPICE_TOOLS, else ~/.coppice/tools)")
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of sessions that name none (default: this one)")
	flags.IntVar(&f.sessions, "max-sessions", 0, capacityUsage)
	flags.IntVar(&f.places.Max, "max-workspaces", 0, "how many workspaces there may be, of each tenant too; for one more, the one that was unused for longest is ended (0: any number)")
	flags.IntVar(&f.places.MaxPerOwner, "workspaces-per-owner", 0, "how many workspaces one owner may have; for one more, one of the owner is ended (0: any number)")
	flags.Var((*console.Time)(&f.idle), "idle", "after how long an idle session ends: seconds, or a time such as 30m (default: 1h; negative: never)")
	flags.IntVar(&f.warmMax, "warm-max", 0, "how many tools may be warm at once (default: 5)")
	flags.IntVar(&f.budget, "memory-budget", 0, "megabytes that all warm tools may use together, by their tool.json (default: no limit)")
	flags.BoolVar(&f.developer, "developer", false, "show the state of the launcher at /api/launcher/state")
	flags.BoolVar(&f.json, "json", false, "print where it listens as one JSON object")
	flags.BoolVar(&f.open, "open", false, "open the live view in a browser, signed in")
	flags.BoolVar(&f.e2b, "e2b", false, "serve workspaces as E2B's sandboxes too, and print what its SDKs want to be set")
	flags.BoolVar(&f.e2bDebug, "e2b-debug", false, "serve one sandbox without any token at the ports that E2B's SDKs use with E2B_DEBUG, 49983 and 49999: everyone on this machine can run code as you")
	flags.BoolVar(&f.jupyter, "jupyter", false, "serve sessions as kernels of a Jupyter Server too, and print the address for its clients")
	f.mcp.add(cmd)
	f.AddBounded(cmd)
	f.timeout.Add(cmd)
	f.hibernate.add(cmd)
	f.saved.add(cmd)
	f.listen.add(cmd)
	if a.engines != nil {
		f.fleet.add(cmd, a.engines.Program)
	}
	f.keep.add(cmd)
	f.addRetention(cmd)
	f.addReplace(cmd)
	return cmd
}

// hostOptions are those of the server's host.
func (f serveFlags) hostOptions(m *metrics, v *vitals.Vitals) coppice.Options {
	if f.idle == 0 {
		f.idle = time.Hour
	}
	var beside coppice.Backend
	if f.jupyter { // its clients choose among the kernels of both
		beside = coppice.Runner(coppice.RunnerOptions{})
	}
	return coppice.Options{
		Beside: beside, MaxSavedCheckpoints: f.saved.most, SavedCheckpointAge: f.saved.age,
		MaxSessions: capacity(f.sessions, f.Backend), MaxWaiting: maxWaiting(f.sessions), IdleTTL: f.idle, Workspaces: f.places,
		Launcher: &launcher.Options{Dir: f.tools, WarmMax: f.warmMax, MemoryBudgetMB: f.budget},
		Sinks:    []sinks.Attachment{m.calls.Attachment(), v.Attachment()}, Metrics: m.calls.Hub(),
		OnEvent: func(e messages.Lifecycle) { m.tree.Hear(e); v.Hear(e) },
	}
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	if f.sessions < 0 {
		return console.Usagef("--max-sessions must not be %d; use 0 for what the free memory allows", f.sessions)
	}
	if f.places.Max < 0 || f.places.MaxPerOwner < 0 {
		return console.Usagef("--max-workspaces and --workspaces-per-owner must not be negative; use 0 for any number")
	}
	if err := f.listen.check(&f, a.Env); err != nil {
		return err
	}
	if err := cmp.Or(f.checkRetention(), f.saved.check(f.hibernate.wanted(a.Env) || f.e2b || f.e2bDebug)); err != nil {
		return err
	}
	if err := cmp.Or(a.CheckToken("COPPICE_TOKEN"), f.mcp.check(a), a.CheckPlace(ctx, f.Python, f.cwd)); err != nil {
		return err
	}
	path, err := client.RecordPath(client.FindOptions{Env: a.Env})
	if err != nil {
		return err
	}
	in, err := a.before(ctx, f, path)
	for more := true; err == nil && more; more = in != nil {
		in, err = a.serveAfter(ctx, f, path, in)
	}
	return err
}

// before is what the server goes on with; nil: nothing.
func (a *app) before(ctx context.Context, f serveFlags, path string) (*inheritance, error) {
	r, there, err := client.ReadRecord(path)
	there = err == nil && there
	if f.replace {
		return a.succeed(ctx, f, path, r)
	}
	if there && r.Runs() {
		return nil, fmt.Errorf("another coppice serve runs: process %d at %s; use that one (%s opens in a browser), end it, replace it with --keep-sessions --replace if it was started with the first of these, or give this one a folder of its own with COPPICE_HOME", r.PID, r.URL, signInPath(path))
	}
	return nil, nil //nolint:nilnil // there is nothing
}

// serveAfter serves, and goes on with what another server has left, or is about to. What it
// returns is to be gone on with: this server has left it to one that did not take it.
func (a *app) serveAfter(ctx context.Context, f serveFlags, path string, in *inheritance) (next *inheritance, err error) {
	defer in.close()
	if f.cwd != "" {
		if f.cwd, err = filepath.Abs(f.cwd); err != nil {
			return nil, console.UsageError{Err: err}
		}
	} else if in != nil {
		f.cwd = in.cwd
	}
	m, v := newMetrics(version.Read()), vitals.New()
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	o := f.hostOptions(m, v)
	o.Logger = logger
	if err := cmp.Or(f.timeout.Fill(&o), f.hibernate.fill(a.Env, &f.HostFlags, &o), f.keep.fill(a.Env, &f.HostFlags, &o)); err != nil {
		return nil, err
	}
	if in != nil {
		o.AwaitKept = in.await
	}
	if f.member, err = a.openFleet(ctx, f, path); err != nil {
		return nil, err
	}
	defer f.member.close(a) // once the host has ended
	f.member.keep(&o)
	f.mcp.fill(a, &f, &o)
	host, keeps, err := a.startServer(ctx, f, o)
	if err != nil {
		return nil, err
	}
	defer host.End()
	if err := a.TellTools(ctx, f.tools); err != nil {
		a.Err.Lines("coppice: " + err.Error()) // it serves sessions all the same
	}
	f.hibernate.tellAsleep(ctx, a.Console, host.Options(), filepath.Dir(path))
	m.tree.Show(host.Snapshot)
	asked := ctx
	unserved := func(err error, api *httpapi.API) error { // the calls that run are not cancelled with it
		in.leave(asked, host)
		if api != nil {
			err = errors.Join(err, api.Close())
		}
		return err
	}
	api, err := httpapi.New(httpapi.Options{Host: host.Host, Cwd: f.cwd, Version: version.Read().Version, Metrics: m.registry, Logger: logger, Why: f.Chosen, Forgets: forgets(host.Options()), Of: vitals.Of, Answered: v.Answered, Retention: f.retention})
	if err != nil {
		return nil, unserved(err, nil)
	}
	if err := api.TakeOver(in.leftExecutions()); err != nil {
		return nil, unserved(err, api)
	}
	m.hibernated(api.Hibernated)
	v.Show(source(host.Host, api, host.Options().MaxSessions))
	defer v.Close()
	page, err := liveview.Mounts(liveview.Options{Version: version.Read().Version, Cwd: api.Cwd(), Vitals: v})
	if err != nil {
		return nil, unserved(err, api)
	}
	sandboxes, more := f.dialect(host.Host, keeps, logger)
	defer sandboxes.Close()
	kernels, also := f.kernels(host.Host, api.Cwd(), logger)
	defer kernels.Close()
	tools, err := f.mcp.open(a, host, api.Cwd())
	if err != nil {
		return nil, unserved(err, api)
	}
	defer tools.Close()
	mounts := slices.Concat(api.Mounts(), page, more, also, tools.Mounts(),
		toolapi.Mounts(toolapi.Options{Tools: host.Launcher(), Developer: f.developer}), workspaceapi.Mounts(workspaceapi.Options{Host: host.Host, Logger: logger}))
	gate, observe := &httpserver.Gate{}, m.observe(host.Traces)
	so := httpserver.Options{Ending: api.End, Logger: logger, Instrument: func(next http.Handler) http.Handler { return gate.Wrap(observe(next)) }}
	f.member.attach(host.Host, api, m, logger)
	mounts = f.member.wrap(mounts, &so, sandboxes, kernels, tools)
	server, err := a.listen(ctx, f, path, so, in, mounts)
	if err != nil {
		return nil, unserved(err, api)
	}
	if err := f.member.join(ctx, server, so, mounts); err != nil {
		return nil, unserved(errors.Join(err, server.Close()), api)
	}
	end, err := f.debug(ctx, sandboxes, logger)
	if err != nil {
		return nil, unserved(errors.Join(err, server.Close()), api)
	}
	ctx, endFar, err := a.listenFar(ctx, &f, host.Host, logger)
	if err != nil {
		return nil, unserved(errors.Join(err, server.Close(), end()), api)
	}
	serving, drained := a.drainFirst(ctx, f.member)
	serving, endNodes := f.member.serve(serving)
	l := &leaving{app: a, host: host, api: api, server: server, gate: gate}
	next, err = a.serveUntil(serving, f, l, path, in)
	drained()
	if !l.served {
		in.leave(asked, host)
	}
	err = errors.Join(err, endNodes(), endFar(), end(), api.Close())
	if next != nil && err != nil { // what was left has no other owner: it is gone on with all the same
		logger.Warn("the server that was to be replaced did not end in order", "err", err)
		err = nil
	}
	return next, err
}

// listen takes the address and, where it can, a Unix socket beside the file that
// tells of the server.
func (a *app) listen(ctx context.Context, f serveFlags, path string, o httpserver.Options, in *inheritance, mounts []httpserver.Mount) (*httpserver.Server, error) {
	o.Addr, o.Token = f.addr, a.Token("COPPICE_TOKEN")
	if runtime.GOOS != "windows" {
		o.Socket = filepath.Join(runFolder(path), fmt.Sprintf("serve-%d.sock", os.Getpid()))
	}
	if in != nil {
		o.Token, o.Inherited = in.token, &in.listeners
	} else {
		_, _ = temp.CleanSockets(runFolder(path)) // of servers that were killed; they do no harm
	}
	server, err := httpserver.Listen(ctx, o, mounts...)
	if errors.Is(err, httpserver.ErrSocket) {
		o.Logger.Info("the server has no Unix socket", "err", err)
		o.Socket = ""
		server, err = httpserver.Listen(ctx, o, mounts...)
	}
	switch {
	case errors.Is(err, httpserver.ErrAddress):
		return nil, console.UsageError{Err: err}
	case err != nil:
		return nil, fmt.Errorf("%w; another address: --addr 127.0.0.1:0", err)
	}
	return server, nil
}

// tellWhere says where the server listens and how one signs in. The link holds the
// token: only a terminal is given it, which no one keeps by accident.
func (a *app) tellWhere(f serveFlags, r client.Record, path, page string) error {
	if f.json {
		told := map[string]any{"url": r.URL, "socket": r.Socket, "token_file": path, "sign_in_file": page, "tools": r.Tools, "pid": r.PID}
		if f.e2b {
			told["e2b_url"] = r.URL + e2b.Base
		}
		if f.jupyter {
			told["jupyter_url"] = r.URL + jupyterapi.Base
		}
		if f.mcp.on {
			told["mcp_url"] = r.URL + mcpserver.Path
		}
		if f.listen.addr != "" {
			told["listen_url"] = f.listen.addr
		}
		if f.member != nil {
			told["node"] = f.member.node.ID()
		}
		return a.WriteJSON(told)
	}
	a.Out.Lines("serving sessions and the tools in "+r.Tools+" at "+r.URL, "the token is in "+path)
	if a.Out.Terminal {
		a.Out.Lines("to watch: coppice top, or in a browser", "  "+signInLink(r))
	} else {
		a.Out.Lines("to watch: coppice top, or open " + page + " in a browser")
	}
	if f.listen.addr != "" {
		a.Out.Lines("serving tenants at " + f.listen.addr + ", with the tokens in " + f.listen.tokens)
	}
	a.tellFleet(f.member)
	if f.e2b {
		tellClients(a.Out, "E2B's SDKs", "e2b", r)
	}
	if f.jupyter {
		tellClients(a.Out, "Jupyter's clients", "jupyter", r)
	}
	if f.mcp.on {
		a.Out.Lines("for agents over MCP: "+r.URL+mcpserver.Path, "  with the header Authorization: Bearer, and the token in "+path)
	}
	return nil
}
