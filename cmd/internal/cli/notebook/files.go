package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/notebook"
)

// errExists refuses to overwrite.
var errExists = errors.New("the file exists; nothing was written")

func (a *app) newCommand() *cobra.Command {
	var format textFormat
	var from string
	cmd := console.Command{
		Use: "new FILE", Short: "Make a notebook",
		Long: "Make an empty Python notebook (nbformat 4.5), or one from a text: a script in the\npercent format or what show prints. A file that exists is left alone.",
		Example: `  coppice notebook new report.ipynb
  coppice notebook new report.ipynb --from analysis.py`,
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			f, err := notebook.OpenOrNew(ctx, args[0])
			switch {
			case err == nil && f.Exists(), err != nil && !errors.Is(err, notebook.ErrNotFound) && exists(args[0]):
				return fmt.Errorf("%s: %w", args[0], errExists)
			case err != nil:
				return err
			}
			spec := json.RawMessage(`{"display_name": "Python 3", "language": "python", "name": "python3"}`)
			if err := f.SetNotebookMetadata(spec, "kernelspec"); err != nil {
				return err
			}
			if err := f.SetNotebookMetadata("python", "language_info", "name"); err != nil {
				return err
			}
			if from != "" {
				if err := a.fillFrom(ctx, f, from, format.Format); err != nil {
					return err
				}
			}
			if _, err := saveNotebook(ctx, f); err != nil {
				return err
			}
			a.Out.Lines(fmt.Sprintf("made %s with %s", args[0], render.Number(f.Len(), "cell")))
			return nil
		},
	}.Make()
	cmd.Flags().StringVar(&from, "from", "", "the text to make it of: a file, or - for standard input")
	format.add(cmd)
	return cmd
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fillFrom applies a text to an empty notebook.
func (a *app) fillFrom(ctx context.Context, f *notebook.File, from string, format notebook.TextFormat) error {
	var text string
	var err error
	if from == "-" {
		text, err = a.cellText()
	} else {
		var data []byte
		data, err = console.ReadText(ctx, from)
		text = string(data)
	}
	if err != nil {
		return err
	}
	if err := refuseOutputs(text); err != nil {
		return err
	}
	parsed, err := notebook.ParseText(text, format)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	_, err = f.ApplyText(text, &notebook.ApplyOptions{Format: parsed.Format, EditorNewline: true})
	return err
}

func (a *app) stripCommand() *cobra.Command {
	var o notebook.StripOptions
	var check bool
	cmd := console.Command{
		Use: "strip FILE...|-", Short: "Remove outputs, for version control",
		Long: "Remove outputs, prompt numbers and what frontends keep of a run, in place; - is a\nfilter from standard input to standard output. Cells tagged keep_output keep theirs.",
		Args: console.Arguments{Least: 1, Most: console.Any}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			if len(args) == 1 && args[0] == "-" {
				d, err := a.readNotebook(ctx, "-")
				if err != nil {
					return err
				}
				d.Strip(&o)
				_, err = d.WriteTo(a.Out)
				return err
			}
			dirty := false
			err := each(ctx, args, func(path string) error {
				if check {
					d, err := a.readNotebook(ctx, path)
					if err != nil {
						return err
					}
					if n := d.Strip(&o); d.Edited() {
						dirty = true
						a.Out.Lines(fmt.Sprintf("%s: %s to strip", path, render.Number(n, "cell")))
					}
					return nil
				}
				return a.editNotebook(ctx, path, staleFlags{}, func(f *notebook.File) (string, error) {
					return fmt.Sprintf("%s: stripped %s", path, render.Number(f.Strip(&o), "cell")), nil
				})
			})
			if err == nil && dirty {
				return &console.Exit{Code: console.Raised}
			}
			return err
		},
	}.Make()
	cmd.Flags().BoolVar(&o.Force, "force", false, "strip cells, too, that ask to keep their outputs")
	cmd.Flags().BoolVar(&o.KeepCounts, "keep-counts", false, "keep prompt numbers")
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with 1 when there is something to strip")
	return cmd
}

func (a *app) mergeCommand() *cobra.Command {
	var output string
	cmd := console.Command{
		Use: "merge BASE OURS THEIRS", Short: "Merge two notebooks that were edited apart",
		Long: `Merge two notebooks that were edited apart from the same base, cell by cell, and
write the result to standard output or to --output. Sources that collide get
conflict markers; the result is a valid notebook in any case. The exit code is 1
when there are conflicts, as git expects of a merge driver:

  git config merge.ipynb.driver "coppice notebook merge --output %A %O %A %B"
  echo '*.ipynb merge=ipynb' >> .gitattributes`,
		Args: console.Arguments{Least: 3, Most: 3}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			var docs [3]*notebook.Document
			for i, path := range args {
				var err error
				if docs[i], err = a.readNotebook(ctx, path); err != nil {
					return err
				}
			}
			merged, conflicts := notebook.Merge(docs[0], docs[1], docs[2], nil)
			if err := a.writeMerged(ctx, merged, output); err != nil {
				return err
			}
			for _, c := range conflicts {
				a.Err.Lines("coppice: " + c.String())
			}
			if len(conflicts) > 0 {
				return &console.Exit{Code: console.Raised}
			}
			return nil
		},
	}.Make()
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write")
	return cmd
}

func (a *app) writeMerged(ctx context.Context, d *notebook.Document, output string) error {
	if output == "" {
		_, err := d.WriteTo(a.Out)
		return err
	}
	f, err := notebook.NewFile(ctx, output, d)
	if err != nil {
		return err
	}
	_, err = saveNotebook(ctx, f)
	return err
}
