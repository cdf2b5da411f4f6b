package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/home"
)

// mcpFlags are those of mcp.
type mcpFlags struct {
	console.HostFlags
	http      string
	tokenFile string
	cwd       string
	style     string
	mode      string
	notebooks bool
	tools     console.ToolDir
	sessions  int
	idle      time.Duration
	shared    bool
	hibernate hibernation
	saved     savedBounds
}

func (a *app) mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := console.Command{
		Use:   "mcp [--http 127.0.0.1:PORT]",
		Short: "Serve Python to an agent over the Model Context Protocol",
		Long: `Serve the tools python and bash, tools that read, edit and run notebooks, and
tools that look after sessions, over the Model Context Protocol: on standard input
and output, or with --http over streamable HTTP at http://127.0.0.1:PORT/mcp.

With --tool-dir the tools of a folder are served as well, as tool_NAME, and code
in cells calls them as tool.NAME(...).

Over HTTP no client sees the variables of another. Up to version 2025-11-25 of the
protocol a connection has its own sessions, and names are its own too. From
2026-07-28 on, where requests stand alone, a call that names no session begins one,
and its result names it; the model passes that name on, and nobody can guess it.
With --shared-sessions a session that a call names is shared by all clients.

Over HTTP each request needs the header "Authorization: Bearer TOKEN". The token
is in the token file, which is made when it is not there.

With --hibernate lossless or lossy, sessions are kept on disk until their next call, and a
model can save one under a name (sessions_save) and have it or another one go on from there
(sessions_restore). On standard input that outlives the server. Over HTTP such a checkpoint
is for the connection, or for who has the name of the session that it was saved of, and ends
with them.

With --isolation landlock or a stronger one the tool bash is left out, unless
--tools both or bash-only asks for it: its commands have the rights of this
process, and so have the tools that read and edit notebooks (--notebooks=false).

The server ends with its input, or at Ctrl-C, and leaves no process behind.`,
		Example: `  coppice mcp
  coppice mcp --http 127.0.0.1:7790 --token-file token

  {"mcpServers": {"python": {"command": "coppice", "args": ["mcp"]}}}`,
		Run: func(ctx context.Context, _ []string) error { return a.mcp(ctx, f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.http, "http", "", "serve streamable HTTP on this loopback address in place of standard input")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token for HTTP (default: mcp-token in Coppice's folder)")
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of sessions that name none (default: this one)")
	flags.StringVar(&f.style, "style", string(agent.StylePython), "the shape of the Python tool: python, eval or repl")
	flags.StringVar(&f.mode, "tools", "", "the tools: both, ipy-only or bash-only (default: COPPICE_PY, else both)")
	flags.BoolVar(&f.notebooks, "notebooks", true, "serve the tools for notebooks, and those of the working directory as resources")
	flags.IntVar(&f.sessions, "max-sessions", 0, capacityUsage)
	flags.Var((*console.Time)(&f.idle), "idle", "after how long an idle session ends: seconds, or a time such as 30m (default: 5m; negative: never)")
	flags.BoolVar(&f.shared, "shared-sessions", false, "let clients over HTTP share the sessions that they name")
	flags.StringVar((*string)(&f.hibernate), "hibernate", "", "keep sessions on disk until their next call that end because they are idle, because room is needed or with the server, and serve the tools sessions_save and sessions_restore: never, lossless or lossy (default: never)")
	f.saved.add(cmd)
	f.AddBounded(cmd)
	f.tools.Add(cmd)
	return cmd
}

// hostOptions are those of the server's host; bash: it has the tool bash.
func (f mcpFlags) hostOptions(bash bool) coppice.Options {
	return coppice.Options{MaxSavedCheckpoints: f.saved.most, SavedCheckpointAge: f.saved.age, Bash: bash, MaxSessions: capacity(f.sessions, f.Backend), MaxWaiting: maxWaiting(f.sessions), IdleTTL: f.idle}
}

func (a *app) mcp(ctx context.Context, f mcpFlags) error {
	if f.sessions < 0 {
		return console.Usagef("--max-sessions must not be %d; use 0 for what the free memory allows", f.sessions)
	}
	if f.tokenFile != "" && f.http == "" {
		return console.Usagef("--token-file needs --http: there is no token on standard input")
	}
	if f.shared && f.http == "" {
		return console.Usagef("--shared-sessions needs --http: standard input has one client")
	}
	if err := cmp.Or(f.saved.check(f.hibernate.wanted(nil)), a.checkToolMode(f.mode), a.CheckPlace(ctx, f.Python, f.cwd)); err != nil {
		return err
	}
	walled := f.Walled(a.Env)
	bash := a.offersBash(walled, f.mode)
	ho := f.hostOptions(bash)
	var err error
	if ho.Launcher, err = a.Tools(ctx, f.tools); err != nil {
		return err
	}
	if err := f.hibernate.fill(nil, &f.HostFlags, &ho); err != nil { // the variable is for serve
		return err
	}
	ho.Logger = slog.New(slog.NewTextHandler(a.Err, nil))
	host, err := a.StartHost(ctx, f.HostFlags, coppice.GatewayOptions{}, ho)
	if err != nil {
		return err
	}
	defer host.End()
	switch {
	case walled && bash:
		a.Err.Lines("coppice mcp: the commands of the tool bash are not isolated: they have the rights of this process")
	case walled:
		a.Err.Lines("coppice mcp: the tool bash is left out, since its commands would not be isolated; --tools both serves it all the same")
	}
	tools := agent.Options{Mode: agent.Mode(f.mode), Style: agent.Style(f.style), Notebooks: f.notebooks, Cwd: f.cwd}
	if _, why, err := agent.ModeOf(ctx, host.Host, tools); err == nil && why != "" {
		a.Err.Lines("coppice mcp: the tool bash alone: " + why)
	}
	o := mcpserver.Options{
		Host: host.Host, Version: version.Read().Version, Cwd: f.cwd,
		Tools: tools, SharedSessions: f.shared, MaxLeftover: max(1, host.Options().MaxSessions/4),
	}
	server, err := mcpserver.New(o)
	if errors.Is(err, coppice.ErrOptions) {
		return console.OptionsError(err)
	} else if err != nil {
		return err
	}
	defer server.Close()
	if f.http != "" {
		return a.serveMCP(ctx, server, f, o)
	}
	backend, why := host.Backend()
	a.Err.Lines(fmt.Sprintf("coppice mcp: serving on standard input and output, %s backend (%s)", backend, why))
	return mcpserver.ServeStdio(ctx, server, a.In, a.Out)
}

// checkToolMode refuses a COPPICE_PY that names no tools, where no flag comes before it.
func (a *app) checkToolMode(mode string) error {
	if py := a.Getenv("PI_PY"); mode == "" && py != "" && home.ToolMode(py) == "" {
		return console.Usagef("%s=%s is not one of 0, bash, 1, py, mix, both", home.Name(a.Env, "PI_PY"), py)
	}
	return nil
}

// offersBash reports whether agents have the tool bash, whose commands are never isolated: where
// sessions are, it has to be asked for.
func (a *app) offersBash(walled bool, mode string) bool {
	asked := agent.Mode(cmp.Or(mode, home.ToolMode(a.Getenv("PI_PY"))))
	return !walled || asked == agent.ModeBoth || asked == agent.ModeBash
}

// serveMCP serves over HTTP until ctx ends.
func (a *app) serveMCP(ctx context.Context, server *mcpserver.Server, f mcpFlags, o mcpserver.Options) error {
	file := f.tokenFile
	if file == "" {
		file = filepath.Join(o.Host.Dir(), "mcp-token")
	}
	token, err := readToken(ctx, file)
	if err != nil {
		return err
	}
	l, err := mcpserver.Listen(ctx, f.http, server, token, o)
	switch {
	case errors.Is(err, httpserver.ErrAddress):
		return console.UsageError{Err: err}
	case err != nil:
		return fmt.Errorf("%w; another address: --http 127.0.0.1:0", err)
	}
	a.Err.Lines(fmt.Sprintf("coppice mcp: serving at %s%s, the token is in %s", l.URL(), mcpserver.Path, file))
	err = l.Serve(ctx)
	if errors.Is(err, httpserver.ErrCut) { // the calls that run end with the host
		err = nil
	}
	return err
}

// maxToken bounds the file of a token, in bytes.
const maxToken = 64 << 10

// readToken reads a token, or makes one. Only its owner may have read it.
func readToken(ctx context.Context, path string) (string, error) {
	f, err := file.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeToken(ctx, path)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := file.ReadAll(ctx, f, maxToken)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("look at the token file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return "", fmt.Errorf("the token file %s can be read by others: chmod 600 it, or delete it and start again", path)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 16 || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("the token file %s holds no token of at least 16 characters without spaces: delete it to have one made", path)
	}
	return token, nil
}

func makeToken(ctx context.Context, path string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the token file: %w", err)
	}
	token := rand.Text()
	out, err := os.CreateTemp(filepath.Dir(path), ".token-*") // 0600
	if err != nil {
		return "", fmt.Errorf("make the token file: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // it has its other name by then
	_, err = io.WriteString(out, token+"\n")
	if err = errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("write the token file: %w", err)
	}
	err = os.Link(out.Name(), path)
	if errors.Is(err, fs.ErrExist) { // another process has just made it
		return readToken(ctx, path)
	}
	if err != nil {
		return "", fmt.Errorf("make the token file: %w", err)
	}
	return token, nil
}
