package notebook

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

func (a *app) searchCommand() *cobra.Command {
	var literal, asJSON bool
	cmd := console.Command{
		Use: "search FILE PATTERN", Short: "Find a regular expression in the sources",
		Long: "Find a regular expression (Go's syntax) in the sources of all cells. The exit code\nis 1 when nothing matches.",
		Args: console.Arguments{Least: 2, Most: 2}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			pattern, err := compile(args[1], literal)
			if err != nil {
				return err
			}
			d, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			matches, err := d.Search(pattern, nil)
			if err != nil {
				return err
			}
			for _, m := range matches {
				if asJSON {
					err = a.WriteJSON(map[string]any{"cell": m.Cell, "line": m.Line, "column": m.Column, "text": m.Text})
				} else {
					a.Out.Lines(fmt.Sprintf("cell:%d:%d:%d: %s", m.Cell, m.Line, m.Column, m.Text))
				}
				if err != nil {
					return err
				}
			}
			if len(matches) == 0 {
				return &console.Exit{Code: console.Raised}
			}
			return nil
		},
	}.Make()
	cmd.Flags().BoolVarP(&literal, "literal", "F", false, "the pattern is a text, no expression")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each match as a line of JSON")
	return cmd
}

func compile(pattern string, literal bool) (*regexp.Regexp, error) {
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, console.UsageError{Err: fmt.Errorf("pattern: %w", err)}
	}
	return re, nil
}

func (a *app) subCommand() *cobra.Command {
	var literal bool
	var cells []string
	var stale staleFlags
	cmd := console.Command{
		Use: "sub FILE PATTERN WITH", Short: "Replace a regular expression in the sources",
		Long: "Replace what a regular expression (Go's syntax) matches in the sources of all\ncells, with $1 and the like.",
		Args: console.Arguments{Least: 3, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			pattern, err := compile(args[1], literal)
			if err != nil {
				return err
			}
			in, err := refs(cells)
			if err != nil {
				return err
			}
			with := args[2]
			if literal {
				with = strings.ReplaceAll(with, "$", "$$")
			}
			return a.editNotebook(ctx, args[0], stale, func(f *notebook.File) (string, error) {
				n, err := f.ReplaceAll(pattern, with, &notebook.SearchOptions{Cells: in})
				return "replaced " + render.Number(n, "match"), err
			})
		},
	}.Make()
	cmd.Flags().BoolVarP(&literal, "literal", "F", false, "PATTERN and WITH are texts, no expressions")
	cmd.Flags().StringSliceVar(&cells, "cell", nil, "only in these cells; may be repeated")
	stale.add(cmd)
	return cmd
}
