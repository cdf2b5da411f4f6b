package notebook

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/notebook"
)

func (a *app) validateCommand() *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use: "validate FILE...", Short: "Check notebooks against the rules of their format",
		Long: "Check notebooks against the rules of their nbformat, 3 or 4: those of the\nofficial schemas, and that ids are unique. Problems are told with their path. - is standard\ninput. The exit code is 1 when there is an error.",
		Args: console.Arguments{Least: 1, Most: console.Any}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			wrong := false
			err := each(ctx, args, func(path string) error {
				problems, err := a.problems(ctx, path)
				if err != nil {
					return err
				}
				if asJSON {
					list := []map[string]any{}
					for _, p := range problems {
						list = append(list, map[string]any{"severity": p.Severity, "path": p.Path, "reason": p.Reason, "cell": p.Cell})
					}
					if err := a.WriteJSON(map[string]any{"file": path, "problems": list}); err != nil {
						return err
					}
				}
				for _, p := range problems {
					wrong = wrong || p.Severity == notebook.SeverityError
					if !asJSON {
						a.Out.Lines(path + ": " + p.String())
					}
				}
				if len(problems) == 0 && !asJSON {
					a.Out.Lines(path + ": valid")
				}
				return nil
			})
			if err == nil && wrong {
				return &console.Exit{Code: console.Raised}
			}
			return err
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object for each file")
	return cmd
}

// problems are what is wrong with a file; one that cannot be read as a notebook
// has one.
func (a *app) problems(ctx context.Context, path string) ([]notebook.Problem, error) {
	d, err := a.readNotebook(ctx, path)
	if err == nil {
		return d.Validate(), nil
	}
	for _, kind := range []error{notebook.ErrInvalidJSON, notebook.ErrStructure, notebook.ErrCell, notebook.ErrVersion} {
		if errors.Is(err, kind) {
			return []notebook.Problem{{Severity: notebook.SeverityError, Path: "$", Reason: err.Error(), Cell: -1}}, nil
		}
	}
	return nil, err
}

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use: "diff OLD NEW", Short: "Compare two notebooks, cell by cell",
		Long: "Compare two notebooks. Cells are matched by id, or by what they hold; moved cells\nare told as moved. - is standard input. The exit code is 1 when they differ.",
		Args: console.Arguments{Least: 2, Most: 2}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			before, err := a.readNotebook(ctx, args[0])
			if err != nil {
				return err
			}
			after, err := a.readNotebook(ctx, args[1])
			if err != nil {
				return err
			}
			diff := notebook.Diff(before, after)
			if asJSON {
				if err := a.WriteJSON(diffJSON(diff)); err != nil {
					return err
				}
			} else {
				for line := range strings.Lines(diff.String()) {
					a.Out.Print(a.Style(a.Out).DiffLine(strings.TrimSuffix(line, "\n")) + "\n")
				}
			}
			if !diff.Empty() {
				return &console.Exit{Code: console.Raised}
			}
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// diffJSON is a comparison as --json shows it: lines begin with what diff(1)
// writes before them.
func diffJSON(diff *notebook.Difference) map[string]any {
	cells := []map[string]any{}
	for _, c := range diff.Cells {
		lines := make([]string, len(c.Lines))
		for i, l := range c.Lines {
			lines[i] = string(l.Op) + l.Text
		}
		cells = append(cells, map[string]any{
			"old": c.Old, "new": c.New, "id": c.ID, "type": c.Type, "old_type": c.OldType, "lines": lines,
			"source": c.Source, "outputs": c.Outputs, "execution_count": c.Count, "metadata": c.Metadata, "attachments": c.Attachments, "moved": c.Moved,
		})
	}
	return map[string]any{"cells": cells, "metadata": append([]string{}, diff.Metadata...), "nbformat": diff.Version}
}
