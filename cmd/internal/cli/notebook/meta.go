package notebook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

func (a *app) tagCommand() *cobra.Command {
	var add, remove []string
	cmd := console.Command{
		Use: "tag FILE CELL...", Short: "Show, add and remove tags",
		Long: "Add and remove tags of cells; with neither --add nor --remove, show them.",
		Args: console.Arguments{Least: 2, Most: console.Any}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
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
		},
	}.Make()
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
		a.Out.Lines(strings.TrimRight(fmt.Sprintf("cell %d: %s", d.Index(c), strings.Join(c.Tags(), ", ")), " "))
	}
	return nil
}

func (a *app) metaCommand() *cobra.Command {
	var remove bool
	var cell string
	cmd := console.Command{
		Use: "meta FILE [PATH [VALUE]]", Short: "Show, set and remove metadata",
		Long: "Show the metadata of the notebook, or with --cell of a cell: all of it, or what is\nunder a PATH of names with dots. VALUE sets it: JSON, or else a text.",
		Example: `  coppice notebook meta report.ipynb kernelspec.name
  coppice notebook meta report.ipynb --cell 3 collapsed true`,
		Args: console.Arguments{Least: 1, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			var path []string
			if len(args) > 1 {
				path = strings.Split(args[1], ".")
			}
			switch {
			case remove && len(args) != 2:
				return console.Usagef("--remove needs a PATH and no VALUE")
			case remove:
				return a.removeMeta(ctx, args[0], cell, path)
			case len(args) == 3:
				return a.setMeta(ctx, args[0], cell, path, args[2])
			default:
				return a.showMeta(ctx, args[0], cell, path)
			}
		},
	}.Make()
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
		return fmt.Errorf("there is no metadata %q", strings.Join(path, "."))
	}
	a.Out.Lines(string(value))
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

// rawJSON reads a value of the command line: JSON, or else the text itself.
func rawJSON(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return notebook.TextValue(text)
}
