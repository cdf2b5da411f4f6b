package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
)

func (a *app) helpersCommand() *cobra.Command {
	var (
		f      console.HostFlags
		cwd    string
		asJSON bool
	)
	cmd := console.Command{
		Use:   "helpers",
		Short: "List the functions that every session has, your modules' among them",
		Long: `List the functions that every session has: the built-in ones, then those of your
own modules, which are the files

  ~/.coppice/agent/modules/*.py       for all sessions
  <cwd>/.coppice/modules/*.py         for sessions in that folder; a file comes in
                                      place of one of yours with the same name

A new session runs each module and gets what it makes public: the names in
__all__, else those without an underscore. __category__ names the heading. The
list is made by reading the files, without running them.

The exit code is 1 when a module cannot be loaded.`,
		Run: func(ctx context.Context, _ []string) error { return a.helpers(ctx, f, cwd, asJSON) },
	}.Make()
	f.Add(cmd)
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory of the sessions (default: this one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// helperList is what helpers prints with --json.
type helperList struct {
	Helpers []environment.Helper `json:"helpers"`
	Modules []environment.Module `json:"modules"`
}

func (a *app) helpers(ctx context.Context, f console.HostFlags, cwd string, asJSON bool) error {
	waiting := a.StartProgress("reading modules", asJSON)
	defer waiting.Done()
	host, err := a.StartHost(ctx, f, console.ColdGateway, coppice.Options{})
	if err != nil {
		return err
	}
	list := helperList{}
	list.Helpers, list.Modules, err = host.HelpersIn(ctx, cwd)
	host.End()
	waiting.Done()
	_, wrong := errors.AsType[*coppice.RequestError](err)
	switch {
	case wrong:
		return console.UsageError{Err: err}
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled}
	}
	if asJSON {
		err = errors.Join(err, a.WriteJSON(list))
	} else {
		a.Out.Lines(helperLines(a.Style(a.Out), list)...)
	}
	for _, m := range list.Modules {
		if err == nil && m.Problem != "" {
			return &console.Exit{Code: console.Raised}
		}
	}
	return err
}

func helperLines(s render.Style, list helperList) []string {
	var rows [][]string
	category := ""
	for _, h := range list.Helpers {
		if h.Category != category {
			category = h.Category
			rows = append(rows, []string{category})
		}
		rows = append(rows, []string{"  " + h.Name + h.Signature, h.Docstring})
	}
	lines := render.Table(s, rows, false)
	for _, m := range list.Modules {
		if m.Problem != "" {
			lines = append(lines, "! "+m.Path+" is not loaded: "+m.Problem)
		}
	}
	return lines
}
