package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/internal/home"
)

// tenantSessions is how many sessions a tenant has at once.
const tenantSessions = 8

// listening are the flags of a server that other machines reach.
type listening struct {
	addr       string
	files      access.Files
	tokens     string
	sessions   int
	sized      func() bool // --tenant-sessions is on the command line
	unconfined bool
}

// add adds the flags to a command.
func (l *listening) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&l.addr, "listen", "", "serve tenants on this address too, which other machines reach: 0.0.0.0:7443; it takes --tls-cert, --tls-key and --tokens")
	flags.StringVar(&l.files.Cert, "tls-cert", "", "the certificate for --listen, and those that it was signed with, as PEM; one that is renewed is read again")
	flags.StringVar(&l.files.Key, "tls-key", "", "the key of the certificate, of mode 0600")
	flags.StringVar(&l.files.ClientCA, "tls-client-ca", "", "take clients alone that have a certificate which these have signed, as PEM, besides a token")
	flags.StringVar(&l.tokens, "tokens", "", "the file of tokens for --listen, of mode 0600, which coppice token changes; it is read again when it changes")
	flags.IntVar(&l.sessions, "tenant-sessions", tenantSessions, "how many kernels one tenant may have at once")
	l.sized = func() bool { return flags.Changed("tenant-sessions") }
	flags.BoolVar(&l.unconfined, "unconfined-tenants", false, "serve several tenants though nothing keeps the code of one from the files of the other")
}

// check refuses flags that do not go together. The error is a UsageError.
func (l *listening) check(f *serveFlags, env []string) error {
	given := []struct {
		name string
		is   bool
	}{
		{"--tls-cert", l.files.Cert != ""},
		{"--tls-key", l.files.Key != ""},
		{"--tokens", l.tokens != ""},
		{"--tls-client-ca", l.files.ClientCA != ""},
		{"--unconfined-tenants", l.unconfined},
		{"--tenant-sessions", l.sized != nil && l.sized()},
	}
	if l.addr == "" {
		for _, one := range given {
			if one.is {
				return console.Usagef("%s is for --listen: without that, coppice serve listens on the loopback interface alone", one.name)
			}
		}
		return nil
	}
	var lack []string
	for _, one := range given[:3] {
		if !one.is {
			lack = append(lack, one.name)
		}
	}
	switch {
	case len(lack) > 0:
		return console.Usagef("--listen needs %s: other machines are served over TLS alone, with a token for each tenant; make the tokens with: coppice token create --tokens FILE --tenant NAME", strings.Join(lack, " and "))
	case l.sessions < 1:
		return console.Usagef("--tenant-sessions must be at least 1, not %d", l.sessions)
	case f.keep.wanted(env):
		return console.Usagef("--keep-sessions keeps sessions without a wall, and tenants have one: leave it (and %s) out with --listen", keepVariable)
	case f.e2bDebug:
		return console.Usagef("--e2b-debug lets everybody on this machine run code without a token: leave it out with --listen")
	case f.Backend == "gateway":
		return console.Usagef("--listen serves tenants with the runner backend, since a Jupyter gateway keeps no one apart: leave --backend gateway out")
	case f.Isolation().Users || f.Isolation().Level == kernel.IsolationUser:
		return console.Usagef("a user for each session does not reach the folders of tenants: leave --isolation-users out with --listen, and use --isolation gvisor, bubblewrap or seccomp")
	case len(f.Isolation().Write) > 0:
		return console.Usagef("--isolation-write would open one folder to all tenants: leave it out with --listen; each has a folder of its own")
	}
	return nil
}

// rung is the isolation of tenants: the one that was asked for, else the strongest.
func (f *serveFlags) rung(env []string) string {
	return cmp.Or(f.Isolation().Level, home.Lookup(env, "COPPICE_ISOLATION"), kernel.IsolationStrongest)
}

// walls are the rungs that keep the code of one tenant from the files, the processes and
// the network connections of another, the strongest first.
var walls = []string{kernel.IsolationGVisor, kernel.IsolationBubblewrap, kernel.IsolationSeccomp}

// walled says whether a rung is such a wall, and why not.
func walled(rung string) error {
	switch {
	case rung == kernel.IsolationStrongest:
		for _, one := range []string{kernel.IsolationSeccomp, kernel.IsolationBubblewrap, kernel.IsolationGVisor} {
			if environment.LacksRung(one) == nil {
				return nil
			}
		}
		return fmt.Errorf("this machine has no isolation that is one: %w", environment.LacksRung(kernel.IsolationSeccomp))
	case !slices.Contains(walls, rung):
		return fmt.Errorf("the isolation %s is none", rung)
	default:
		return environment.LacksRung(rung)
	}
}

// may refuses a tenant beside others when no wall is between them.
func (l *listening) may(wall error) func(tenant string, all []string) error {
	return func(_ string, all []string) error {
		if wall == nil || l.unconfined || len(all) <= 1 {
			return nil
		}
		return fmt.Errorf("%d tenants have tokens, and no wall would be between them: %w; use --isolation with one of %s, or --unconfined-tenants if they may do to each other what they like", len(all), wall, strings.Join(walls, ", "))
	}
}

// far serves tenants while the server of this machine's user runs.
type far struct {
	server *access.Server
	url    string
	undo   []func() error // the last one first
	ended  chan error     // of the server; nil: it never served
	stop   context.CancelFunc
}

// listenFar begins to serve tenants, if that was asked for. ctx is that of the program, and
// what it returns the one to serve with from then on, which ends when the tenants' server
// fails or an admin asks for it. end ends that server, and waits for it.
func (a *app) listenFar(ctx context.Context, f *serveFlags, host *coppice.Host, logger *slog.Logger) (within context.Context, end func() error, err error) {
	if f.listen.addr == "" {
		return ctx, func() error { return nil }, nil
	}
	s := &far{}
	within, s.stop = context.WithCancel(ctx)
	if err := s.open(within, a, f, host, logger); err != nil {
		return nil, nil, errors.Join(err, s.end())
	}
	f.listen.addr = s.url
	s.ended = make(chan error, 1)
	go func() { // ends with within; end joins it
		err := s.server.Serve(within)
		s.stop()
		s.ended <- err
	}()
	return within, s.end, nil
}

// end ends the server, and what it was made of.
func (s *far) end() error {
	s.stop()
	var err error
	switch {
	case s.ended != nil:
		err = <-s.ended
	case s.server != nil:
		err = s.server.Close()
	}
	for _, undo := range slices.Backward(s.undo) {
		err = errors.Join(err, undo())
	}
	return err
}

func (s *far) open(ctx context.Context, a *app, f *serveFlags, host *coppice.Host, logger *slog.Logger) error {
	certificate, err := access.LoadCertificate(ctx, f.listen.files, logger)
	if err != nil {
		return fmt.Errorf("serve --listen: %w", err)
	}
	path, err := filepath.Abs(f.listen.tokens)
	if err != nil {
		return console.UsageError{Err: err}
	}
	tokens, err := access.Watch(ctx, access.File{Path: path}, logger)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("serve --listen: %w; make it with: coppice token create --tokens %s --tenant NAME", err, path)
	} else if err != nil {
		return fmt.Errorf("serve --listen: %w", err)
	}
	s.undo = append(s.undo, func() error { tokens.Close(); return nil })
	rung := f.rung(a.Env)
	wall := walled(rung)
	may := f.listen.may(wall)
	if err := may("", tokens.Tenants()); err != nil {
		return console.UsageError{Err: fmt.Errorf("serve --listen: %w", err)}
	}
	if wall != nil {
		logger.Warn("code of tenants can do what the user of this server may do, also to the tokens file and the key", "why", wall)
	}
	dir := filepath.Join(host.Dir(), "tenants")
	audit, err := access.OpenAudit(filepath.Join(dir, "access.jsonl"), logger)
	if err != nil {
		return fmt.Errorf("serve --listen: %w", err)
	}
	s.undo = append(s.undo, audit.Close)
	tenants := &tenants{app: a, f: f, dir: dir, rung: rung, walled: wall == nil, logger: logger, metrics: newRegistry(), since: time.Now()}
	public, err := tenants.page()
	if err != nil {
		return err
	}
	if tenants.python, err = a.pythonOf(ctx, f); err != nil {
		return err
	}
	s.server, err = access.Listen(ctx, access.Options{
		Addr: f.listen.addr, Certificate: certificate, Tokens: tokens, Start: tenants.start, May: may,
		Public: public, Admin: []httpserver.Mount{tenants.allMetrics()}, Shutdown: s.stop, Audit: audit, Logger: logger,
		Nodes: f.member.nodesToken(),
	})
	switch {
	case errors.Is(err, httpserver.ErrAddress):
		return console.UsageError{Err: fmt.Errorf("--listen: %w", err)}
	case err != nil:
		return fmt.Errorf("serve --listen: %w", err)
	}
	s.url = s.server.URL()
	if f.member != nil {
		f.member.tenants.server.Store(s.server)
	}
	return nil
}

// pythonOf is the interpreter that the server's host has found: those of tenants have
// folders of their own, and would find another.
func (a *app) pythonOf(ctx context.Context, f *serveFlags) (string, error) {
	report, err := coppice.Environment(ctx, coppice.Options{Env: a.Env, Python: f.Python}, "")
	if err != nil {
		return "", fmt.Errorf("look for the Python of tenants: %w", err)
	}
	if report.Python == nil {
		return "", fmt.Errorf("no Python can be used for tenants: %s; coppice env shows which there is", report.Problem)
	}
	return report.Python.Path, nil
}
