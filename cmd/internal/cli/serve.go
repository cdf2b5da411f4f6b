package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
)

// serveFlags are those of serve.
type serveFlags struct {
	addr      string
	tools     string
	warmMax   int
	budget    int
	developer bool
	json      bool
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Keep tools warm and serve them over HTTP on the loopback interface",
		Long: `Serve the tools of a folder over HTTP, on the loopback interface alone. Every
request has to carry a token (Authorization: Bearer ...): that of COPPICE_TOKEN,
or a new one. Address and token are written to ~/.coppice/serve.json, which only
its user can read and where coppice tool finds them. An interrupt ends the
server, and all tools with it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", httpserver.DefaultAddr, "the loopback address to listen on; port 0 takes a free one")
	flags.StringVar(&f.tools, "tools", "", "the folder of tools (default: COPPICE_TOOLS, else ~/.coppice/tools)")
	flags.IntVar(&f.warmMax, "warm-max", 0, "how many tools may be warm at once (default: 5)")
	flags.IntVar(&f.budget, "memory-budget", 0, "megabytes that all warm tools may use together, by their tool.json (default: no limit)")
	flags.BoolVar(&f.developer, "developer", false, "show the state of the launcher at /api/launcher/state")
	flags.BoolVar(&f.json, "json", false, "print where it listens as one JSON object")
	return cmd
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	launcher, err := coppice.StartLauncher(ctx, coppice.LauncherOptions{Dir: f.tools, Env: a.env, WarmMax: f.warmMax, MemoryBudgetMB: f.budget})
	switch {
	case ctx.Err() != nil:
		return &codeError{code: codeCancelled}
	case err != nil:
		return toolFailure(err)
	}
	defer a.endLauncher(launcher)
	server, err := httpserver.Listen(ctx, httpserver.Options{Addr: f.addr, Token: a.getenv("COPPICE_TOKEN")},
		toolapi.Mounts(toolapi.Options{Tools: launcher, Developer: f.developer})...)
	if errors.Is(err, httpserver.ErrAddress) {
		return usageError{err}
	}
	if err != nil {
		return failure(fmt.Errorf("%w; another address: --addr 127.0.0.1:0", err))
	}
	path, err := a.serveFile()
	if err != nil {
		return failure(errors.Join(err, server.Close()))
	}
	record := httpserver.Record{URL: server.URL(), Token: server.Token(), PID: os.Getpid(), Tools: launcher.Dir()}
	if err := httpserver.WriteRecord(path, record); err != nil {
		return failure(errors.Join(err, server.Close()))
	}
	defer func() {
		if err := httpserver.RemoveRecord(path, record); err != nil {
			a.err.lines("coppice: " + err.Error())
		}
	}()
	if f.json {
		err = a.writeJSON(map[string]any{"url": record.URL, "token_file": path, "tools": record.Tools, "pid": record.PID})
	} else {
		a.out.lines("serving the tools in "+record.Tools+" at "+record.URL, "the token is in "+path)
	}
	if err != nil {
		return failure(errors.Join(err, server.Close()))
	}
	return failure(server.Serve(ctx))
}

// endLauncher ends all tools, in a hurry when the process shall end.
func (a *app) endLauncher(l *coppice.Launcher) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	stop := context.AfterFunc(a.stops.hard, func() {
		timer := time.AfterFunc(shutdownHurry, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	defer stop()
	if report := l.Shutdown(ctx); !report.Clean() {
		a.err.lines("coppice: some tools did not end")
	}
}
