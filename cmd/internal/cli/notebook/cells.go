package notebook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

// sourceFlags say what a cell is to hold.
type sourceFlags struct {
	code string
	typ  string
	tags []string
}

func (f *sourceFlags) add(cmd *cobra.Command, typ string) {
	cmd.Flags().StringVarP(&f.code, "code", "c", "", "the source (default: standard input)")
	cmd.Flags().StringVarP(&f.typ, "type", "t", "", "the type: code, markdown or raw (default: "+typ+")")
}

// source is what --code says if it was given, else standard input.
func (f *sourceFlags) source(a *app, cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("code") {
		return f.code, nil
	}
	text, err := a.cellText()
	return strings.TrimSuffix(text, "\n"), err
}

func (a *app) insertCommand() *cobra.Command {
	var f sourceFlags
	var cmd *cobra.Command
	cmd = console.Command{
		Use: "insert FILE INDEX", Short: "Insert a cell before an index",
		Long: "Insert a cell before the cell at an index; \"end\" appends. A notebook that does not\nexist is made.",
		Example: `  coppice notebook insert report.ipynb 0 -t markdown -c '# Report'
  coppice notebook insert report.ipynb end < cell.py`,
		Args: console.Arguments{Least: 2, Most: 2}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			file, err := notebook.OpenOrNew(ctx, args[0])
			if err != nil {
				return err
			}
			index := file.Len()
			if args[1] != "end" {
				if index, err = number("INDEX", args[1]); err != nil {
					return err
				}
			}
			text, err := f.source(a, cmd)
			if err != nil {
				return err
			}
			cells, err := file.Insert(index, notebook.NewCell{Type: notebook.CellType(f.typ), Source: text, Tags: f.tags})
			if err != nil {
				return err
			}
			if _, err := saveNotebook(ctx, file); err != nil {
				return err
			}
			a.Out.Lines("inserted " + describe(file.Document, cells[0]))
			return nil
		},
	}.Make()
	f.add(cmd, "code")
	cmd.Flags().StringSliceVar(&f.tags, "tag", nil, "tag the cell; may be repeated")
	return cmd
}

// number reads a count or a place of the command line.
func number(name, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, console.Usagef("%s must be a number, not %q", name, text)
	}
	return n, nil
}

// describe names a cell for a person.
func describe(d *notebook.Document, c *notebook.Cell) string {
	text := fmt.Sprintf("cell %d (%s", d.Index(c), c.Type())
	if c.ID() != "" {
		text += ", id " + c.ID()
	}
	return text + ")"
}

func (a *app) replaceCommand() *cobra.Command {
	var f sourceFlags
	var stale staleFlags
	var cmd *cobra.Command
	cmd = console.Command{
		Use: "replace FILE CELL", Short: "Replace the source of a cell, or its type",
		Long: "Replace the source of a cell with --code or standard input. With --type and no\n--code only the type changes.",
		Args: console.Arguments{Least: 2, Most: 2}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			ref, err := notebook.ParseRef(args[1])
			if err != nil {
				return err
			}
			only := f.typ != "" && !cmd.Flags().Changed("code")
			text := ""
			if !only {
				if text, err = f.source(a, cmd); err != nil {
					return err
				}
			}
			return a.editNotebook(ctx, args[0], stale, func(file *notebook.File) (string, error) {
				c, err := file.Find(ref)
				if err != nil {
					return "", err
				}
				if f.typ != "" {
					if _, err := file.SetType(ref, notebook.CellType(f.typ)); err != nil {
						return "", err
					}
				}
				if !only {
					if _, err := file.SetSource(ref, text); err != nil {
						return "", err
					}
				}
				said := "replaced " + describe(file.Document, c)
				if c.Stale() {
					said += "; its outputs are stale"
				}
				return said, nil
			})
		},
	}.Make()
	f.add(cmd, "as it is")
	stale.add(cmd)
	return cmd
}

// refs reads references to cells.
func refs(args []string) ([]notebook.Ref, error) {
	var out []notebook.Ref
	for _, arg := range args {
		ref, err := notebook.ParseRef(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
	}
	return out, nil
}

func (a *app) deleteCommand() *cobra.Command {
	return console.Command{
		Use: "delete FILE CELL...", Short: "Delete cells",
		Long: "Delete cells. All of them are found before one is deleted.",
		Args: console.Arguments{Least: 2, Most: console.Any}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			cells, err := refs(args[1:])
			if err != nil {
				return err
			}
			return a.editNotebook(ctx, args[0], staleFlags{}, func(f *notebook.File) (string, error) {
				before := f.Len()
				err := f.Delete(cells...)
				return fmt.Sprintf("deleted %s, %d left", render.Number(before-f.Len(), "cell"), f.Len()), err
			})
		},
	}.Make()
}

func (a *app) moveCommand() *cobra.Command {
	return console.Command{
		Use: "move FILE CELL INDEX", Short: "Move a cell",
		Long: "Move a cell to an index, counted after it was taken out: 0 makes it the first.",
		Args: console.Arguments{Least: 3, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			ref, err := notebook.ParseRef(args[1])
			if err != nil {
				return err
			}
			to, err := number("INDEX", args[2])
			if err != nil {
				return err
			}
			return a.editNotebook(ctx, args[0], staleFlags{}, func(f *notebook.File) (string, error) {
				c, err := f.Find(ref)
				if err != nil {
					return "", err
				}
				return fmt.Sprintf("moved to cell %d", to), errors.Join(f.Move(ref, to), found(f.Document, c))
			})
		},
	}.Make()
}

// found guards against a cell that an edit lost.
func found(d *notebook.Document, c *notebook.Cell) error {
	if d.Index(c) < 0 {
		return errors.New("the cell is gone")
	}
	return nil
}

func (a *app) splitCommand() *cobra.Command {
	var stale staleFlags
	cmd := console.Command{
		Use: "split FILE CELL LINE", Short: "Split a cell before a line",
		Long: "Split a cell before a line of its source, counted from 1. The first part keeps id,\nmetadata and outputs.",
		Args: console.Arguments{Least: 3, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			ref, err := notebook.ParseRef(args[1])
			if err != nil {
				return err
			}
			line, err := number("LINE", args[2])
			if err != nil {
				return err
			}
			return a.editNotebook(ctx, args[0], stale, func(f *notebook.File) (string, error) {
				c, err := f.Split(ref, line)
				if err != nil {
					return "", err
				}
				return "split off " + describe(f.Document, c), nil
			})
		},
	}.Make()
	stale.add(cmd)
	return cmd
}

func (a *app) joinCommand() *cobra.Command {
	var stale staleFlags
	cmd := console.Command{
		Use: "join FILE CELL [COUNT]", Short: "Join cells",
		Long: "Join COUNT cells (2) that begin with CELL into the first of them.",
		Args: console.Arguments{Least: 2, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			ref, err := notebook.ParseRef(args[1])
			if err != nil {
				return err
			}
			count := 2
			if len(args) == 3 {
				if count, err = number("COUNT", args[2]); err != nil {
					return err
				}
			}
			return a.editNotebook(ctx, args[0], stale, func(f *notebook.File) (string, error) {
				c, err := f.Join(ref, count)
				if err != nil {
					return "", err
				}
				return "joined into " + describe(f.Document, c), nil
			})
		},
	}.Make()
	stale.add(cmd)
	return cmd
}
