package cli

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/cmd/internal/version"
)

// mcpServing is the Model Context Protocol as a part of serve.
type mcpServing struct {
	on   bool
	bash bool            // the tool bash is there
	of   mcpserver.Fleet // of a node
}

func (d *mcpServing) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&d.on, "mcp", false, "serve agents over the Model Context Protocol too, at /mcp, as coppice mcp --http does")
}

// check refuses what no tools can be made of.
func (d *mcpServing) check(a *app) error {
	if !d.on {
		return nil
	}
	return a.checkToolMode("")
}

// fill has the host be one for the protocol.
func (d *mcpServing) fill(a *app, f *serveFlags, o *coppice.Options) {
	if !d.on {
		return
	}
	d.bash = a.offersBash(f.Walled(a.Env), "")
	o.Bash = d.bash
	if f.member != nil {
		sum := hmac.New(sha256.New, []byte(f.member.token))
		_, _ = sum.Write([]byte("sessions of MCP in a fleet")) // a hash takes all
		d.of = mcpserver.Fleet{Secret: sum.Sum(nil), Tag: mcpserver.NewTag()}
		o.Output.FirstArtifact = d.of.FirstArtifact()
	}
}

// open makes the part of the server, nil when it was not asked for.
func (d *mcpServing) open(a *app, host *console.Host, cwd string) (*mcpserver.API, error) {
	if !d.on {
		return nil, nil //nolint:nilnil // it is none
	}
	if !d.bash {
		a.Err.Lines("coppice serve: the tool bash of --mcp is left out, since its commands would not be isolated; COPPICE_PY=both serves it all the same")
	}
	o := mcpserver.Options{
		Host: host.Host, Version: version.Read().Version, Cwd: cwd, Tools: agent.Options{Notebooks: true, Cwd: cwd},
		MaxLeftover: max(1, host.Options().MaxSessions/4), Fleet: d.of,
	}
	server, err := mcpserver.New(o)
	switch {
	case errors.Is(err, coppice.ErrOptions):
		return nil, console.OptionsError(err)
	case err != nil:
		return nil, err
	}
	return mcpserver.NewAPI(server, o), nil
}
