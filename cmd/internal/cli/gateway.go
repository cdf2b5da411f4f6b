package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
)

// gatewayStopTime bounds the wait for others that start or stop a gateway.
const gatewayStopTime = 20 * time.Second

func (a *app) gatewayCommand() *cobra.Command {
	cmd := console.Command{
		Use:   "gateway",
		Short: "Look at, start and stop the shared Kernel Gateways",
		Long: `The hosts and commands of one user share one local Kernel Gateway for each
Python environment. It keeps the sessions of "coppice run --session", and ends
itself when nobody has used it for five minutes. When one has all the kernels that
it takes (150, or COPPICE_GATEWAY_KERNELS), sessions go to a further one, a shard.`,
	}.Make()
	cmd.AddCommand(a.gatewaySub("status", "Show the shared gateways",
		"The exit code is 0 when one answers, and 1 when none runs or one does not answer.",
		func(ctx context.Context, o jupyter.ServerOptions) ([]jupyter.SharedStatus, error) {
			found, err := jupyter.LookShared(ctx, o.Home)
			if err == nil && !allRun(found) {
				err = &console.Exit{Code: console.Raised}
			}
			return found, err
		}))
	cmd.AddCommand(a.gatewaySub("start", "Find the shared gateway of this environment, or start it", "", jupyter.StartShared))
	cmd.AddCommand(a.gatewaySub("stop", "End the shared gateways, their kernels and the sessions kept in them",
		"Programs that use one are told, and start another when they need it.",
		func(ctx context.Context, o jupyter.ServerOptions) ([]jupyter.SharedStatus, error) {
			ctx, cancel := context.WithTimeout(ctx, gatewayStopTime)
			defer cancel()
			found, err := jupyter.StopShared(ctx, o.Home)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("%w; end that process and try again", err)
			}
			return found, err
		}))
	return cmd
}

// gatewaySub is one of the commands; do may return what it found and a codeError
// without text as well.
func (a *app) gatewaySub(name, short, long string, do func(context.Context, jupyter.ServerOptions) ([]jupyter.SharedStatus, error)) *cobra.Command {
	var (
		python string
		asJSON bool
	)
	cmd := console.Command{Use: name, Short: short, Long: short + ".\n\n" + long, Run: func(ctx context.Context, _ []string) error {
		waiting := a.StartProgress("gateway "+name, asJSON)
		defer waiting.Done()
		dir, err := environment.Dir(environment.Options{Env: a.Env})
		if err != nil {
			return console.UsageError{Err: err}
		}
		found, err := do(ctx, jupyter.ServerOptions{Home: dir, Env: a.Env, Python: python})
		waiting.Done()
		code, quiet := errors.AsType[*console.Exit](err)
		switch {
		case errors.Is(err, jupyter.ErrOptions):
			return console.OptionsError(err)
		case ctx.Err() != nil:
			return &console.Exit{Code: console.Cancelled}
		case err != nil && !quiet:
			return err
		}
		if asJSON {
			if found == nil {
				found = []jupyter.SharedStatus{}
			}
			err = a.WriteJSON(found)
		} else {
			a.Out.Lines(gatewayLines(a.Style(a.Out), name, found)...)
			err = nil
		}
		if err == nil && quiet {
			return code
		}
		return err
	}}.Make()
	if name == "start" {
		cmd.Flags().StringVar(&python, "python", "", "the Python interpreter to use (default: the active or managed environment)")
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

func allRun(found []jupyter.SharedStatus) bool {
	for _, g := range found {
		if g.State != jupyter.SharedRunning {
			return false
		}
	}
	return len(found) > 0
}

func gatewayLines(s render.Style, name string, found []jupyter.SharedStatus) []string {
	if len(found) == 0 {
		return []string{"no shared gateway runs"}
	}
	if name == "stop" {
		var lines []string
		for _, g := range found {
			lines = append(lines, "ended "+strconv.Itoa(g.PID)+" at "+g.URL)
		}
		return lines
	}
	rows := [][]string{{"gateway", "shard", "pid", "state", "kernels", "hosts", "sessions", "python"}}
	for _, g := range found {
		kernels := "?"
		if g.Kernels >= 0 {
			kernels = strconv.Itoa(g.Kernels) + "/" + strconv.Itoa(g.MaxKernels)
		}
		rows = append(rows, []string{g.URL, strconv.Itoa(g.Shard), strconv.Itoa(g.PID), g.State, kernels, strconv.Itoa(g.Hosts), strconv.Itoa(g.Sessions), g.Python})
	}
	return render.Table(s, rows, true)
}
