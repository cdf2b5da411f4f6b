package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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

func (a *app) nbInsertCommand() *cobra.Command {
	var f sourceFlags
	var cmd *cobra.Command
	cmd = nbCommand("insert FILE INDEX", "Insert a cell before an index", "Insert a cell before the cell at an index; \"end\" appends. A notebook that does not\nexist is made.",
		`  coppice notebook insert report.ipynb 0 -t markdown -c '# Report'
  coppice notebook insert report.ipynb end < cell.py`, 2, 2,
		func(ctx context.Context, args []string) error {
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
			a.out.lines("inserted " + describe(file.Document, cells[0]))
			return nil
		})
	f.add(cmd, "code")
	cmd.Flags().StringSliceVar(&f.tags, "tag", nil, "tag the cell; may be repeated")
	return cmd
}

// number reads a count or a place of the command line.
func number(name, text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, usagef("%s must be a number, not %q", name, text)
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

func (a *app) nbReplaceCommand() *cobra.Command {
	var f sourceFlags
	var stale staleFlags
	var cmd *cobra.Command
	cmd = nbCommand("replace FILE CELL", "Replace the source of a cell, or its type", "Replace the source of a cell with --code or standard input. With --type and no\n--code only the type changes.", "", 2, 2,
		func(ctx context.Context, args []string) error {
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
		})
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

func (a *app) nbDeleteCommand() *cobra.Command {
	return nbCommand("delete FILE CELL...", "Delete cells", "Delete cells. All of them are found before one is deleted.", "", 2, -1,
		func(ctx context.Context, args []string) error {
			cells, err := refs(args[1:])
			if err != nil {
				return err
			}
			return a.editNotebook(ctx, args[0], staleFlags{}, func(f *notebook.File) (string, error) {
				before := f.Len()
				err := f.Delete(cells...)
				return fmt.Sprintf("deleted %s, %d left", render.Number(before-f.Len(), "cell"), f.Len()), err
			})
		})
}

func (a *app) nbMoveCommand() *cobra.Command {
	return nbCommand("move FILE CELL INDEX", "Move a cell", "Move a cell to an index, counted after it was taken out: 0 makes it the first.", "", 3, 3,
		func(ctx context.Context, args []string) error {
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
		})
}

// found guards against a cell that an edit lost.
func found(d *notebook.Document, c *notebook.Cell) error {
	if d.Index(c) < 0 {
		return errors.New("the cell is gone")
	}
	return nil
}

func (a *app) nbSplitCommand() *cobra.Command {
	var stale staleFlags
	cmd := nbCommand("split FILE CELL LINE", "Split a cell before a line", "Split a cell before a line of its source, counted from 1. The first part keeps id,\nmetadata and outputs.", "", 3, 3,
		func(ctx context.Context, args []string) error {
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
		})
	stale.add(cmd)
	return cmd
}

func (a *app) nbJoinCommand() *cobra.Command {
	var stale staleFlags
	cmd := nbCommand("join FILE CELL [COUNT]", "Join cells", "Join COUNT cells (2) that begin with CELL into the first of them.", "", 2, 3,
		func(ctx context.Context, args []string) error {
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
		})
	stale.add(cmd)
	return cmd
}

func (a *app) nbTagCommand() *cobra.Command {
	var add, remove []string
	cmd := nbCommand("tag FILE CELL...", "Show, add and remove tags", "Add and remove tags of cells; with neither --add nor --remove, show them.", "", 2, -1,
		func(ctx context.Context, args []string) error {
			cells, err := refs(args[1:])
			if err != nil {
				return err
			}
			if len(add)+len(remove) == 0 {
				return a.showTags(ctx, args[0], cells)
			}
			return a.editNotebook(ctx, args[0], staleFlags{}, func(f *notebook.File) (string, error) {
				for _, ref := range cells {
					if err := f.AddTags(ref, add...); err != nil {
						return "", err
					}
					if err := f.RemoveTags(ref, remove...); err != nil {
						return "", err
					}
				}
				return "tagged " + render.Number(len(cells), "cell"), nil
			})
		})
	cmd.Flags().StringSliceVar(&add, "add", nil, "tags to add")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "tags to remove")
	return cmd
}

func (a *app) showTags(ctx context.Context, path string, cells []notebook.Ref) error {
	d, err := a.readNotebook(ctx, path)
	if err != nil {
		return err
	}
	for _, ref := range cells {
		c, err := d.Find(ref)
		if err != nil {
			return err
		}
		a.out.lines(strings.TrimRight(fmt.Sprintf("cell %d: %s", d.Index(c), strings.Join(c.Tags(), ", ")), " "))
	}
	return nil
}

func (a *app) nbMetaCommand() *cobra.Command {
	var remove bool
	var cell string
	cmd := nbCommand("meta FILE [PATH [VALUE]]", "Show, set and remove metadata",
		"Show the metadata of the notebook, or with --cell of a cell: all of it, or what is\nunder a PATH of names with dots. VALUE sets it: JSON, or else a text.",
		`  coppice notebook meta report.ipynb kernelspec.name
  coppice notebook meta report.ipynb --cell 3 collapsed true`, 1, 3,
		func(ctx context.Context, args []string) error {
			var path []string
			if len(args) > 1 {
				path = strings.Split(args[1], ".")
			}
			switch {
			case remove && len(args) != 2:
				return usagef("--remove needs a PATH and no VALUE")
			case remove:
				return a.removeMeta(ctx, args[0], cell, path)
			case len(args) == 3:
				return a.setMeta(ctx, args[0], cell, path, args[2])
			default:
				return a.showMeta(ctx, args[0], cell, path)
			}
		})
	cmd.Flags().StringVar(&cell, "cell", "", "the cell whose metadata it is (default: the notebook's)")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove what is under PATH")
	return cmd
}

func (a *app) showMeta(ctx context.Context, file, cell string, path []string) error {
	d, err := a.readNotebook(ctx, file)
	if err != nil {
		return err
	}
	value, ok := d.Metadata(path...)
	if cell != "" {
		ref, err := notebook.ParseRef(cell)
		if err != nil {
			return err
		}
		c, err := d.Find(ref)
		if err != nil {
			return err
		}
		value, ok = c.Metadata(path...)
	}
	if !ok {
		return failure(fmt.Errorf("there is no metadata %q", strings.Join(path, ".")))
	}
	a.out.lines(string(value))
	return nil
}

func (a *app) setMeta(ctx context.Context, file, cell string, path []string, value string) error {
	return a.editNotebook(ctx, file, staleFlags{}, func(f *notebook.File) (string, error) {
		said := "set " + strings.Join(path, ".")
		if cell == "" {
			return said, f.SetNotebookMetadata(rawJSON(value), path...)
		}
		ref, err := notebook.ParseRef(cell)
		if err != nil {
			return "", err
		}
		return said, f.SetMetadata(ref, rawJSON(value), path...)
	})
}

func (a *app) removeMeta(ctx context.Context, file, cell string, path []string) error {
	return a.editNotebook(ctx, file, staleFlags{}, func(f *notebook.File) (string, error) {
		said := "removed " + strings.Join(path, ".")
		if cell == "" {
			f.RemoveNotebookMetadata(path...)
			return said, nil
		}
		ref, err := notebook.ParseRef(cell)
		if err != nil {
			return "", err
		}
		_, err = f.RemoveMetadata(ref, path...)
		return said, err
	})
}

func (a *app) nbSubCommand() *cobra.Command {
	var literal bool
	var cells []string
	var stale staleFlags
	cmd := nbCommand("sub FILE PATTERN WITH", "Replace a regular expression in the sources", "Replace what a regular expression (Go's syntax) matches in the sources of all\ncells, with $1 and the like.", "", 3, 3,
		func(ctx context.Context, args []string) error {
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
		})
	cmd.Flags().BoolVarP(&literal, "literal", "F", false, "PATTERN and WITH are texts, no expressions")
	cmd.Flags().StringSliceVar(&cells, "cell", nil, "only in these cells; may be repeated")
	stale.add(cmd)
	return cmd
}
