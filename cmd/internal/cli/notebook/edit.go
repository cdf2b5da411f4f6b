package notebook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/notebook"
)

// applyFlags are those of apply and edit.
type applyFlags struct {
	staleFlags
	dryRun bool
	format textFormat
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	cmd := console.Command{
		Use: "apply FILE [TEXT|-]", Short: "Make a notebook be what an edited text says",
		Long: `Apply edited text, of a file or of standard input, to a notebook. A marker with
cell:N takes that cell along, with its id, metadata and outputs, wherever it
stands now; a marker without makes a new cell; a cell without a marker is
deleted. A marker whose N is that of no cell, or of a marker above, makes a new
cell too, and a warning says so, since a number that was mistyped costs the cell
its outputs: --dry-run shows what would become of FILE. Text in the percent
format (Jupytext, Spyder, VS Code) is taken too. A notebook that does not exist is
made.`,
		Example: `  coppice notebook show report.ipynb > report.txt
  coppice notebook apply report.ipynb report.txt --clear-stale
  coppice notebook show a.ipynb | sed s/foo/bar/ | coppice notebook apply a.ipynb`,
		Args: console.Arguments{Least: 1, Most: 2}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			var text []byte
			var err error
			if len(args) == 2 && args[1] != "-" {
				text, err = console.ReadText(ctx, args[1])
			} else {
				var in string
				in, err = a.cellText()
				text = []byte(in)
			}
			if err != nil {
				return err
			}
			return a.applyText(ctx, args[0], string(text), f)
		},
	}.Make()
	f.add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change, and write nothing")
	f.format.add(cmd)
	return cmd
}

func (a *app) editCommand() *cobra.Command {
	var f applyFlags
	cmd := console.Command{
		Use: "edit FILE", Short: "Edit a notebook as text, in an editor",
		Long: `Open the text of a notebook in $VISUAL or $EDITOR and apply it when the editor
ends. When standard input is no terminal the text is read from there, as apply
does. A notebook that does not exist is made. Text that cannot be applied is
kept, and its place told.`,
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			if term.IsTerminal(a.In) {
				return a.editInEditor(ctx, args[0], f)
			}
			text, err := a.cellText()
			if err != nil {
				return err
			}
			return a.applyText(ctx, args[0], text, f)
		},
	}.Make()
	f.add(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change, and write nothing")
	f.format.add(cmd)
	return cmd
}

// applyText applies text and says what that did.
func (a *app) applyText(ctx context.Context, path, text string, f applyFlags) error {
	file, err := notebook.OpenOrNew(ctx, path)
	if err != nil {
		return err
	}
	return a.applyTo(ctx, file, text, f)
}

func (a *app) applyTo(ctx context.Context, file *notebook.File, text string, f applyFlags) error {
	if strings.TrimSpace(text) == "" && file.Len() > 0 {
		return console.Usagef("the text is empty, and would delete all %s of %s; nothing was changed", render.Number(file.Len(), "cell"), file.Path)
	}
	if err := refuseOutputs(text); err != nil {
		return err
	}
	before := file.Clone()
	file.Stale = f.policy()
	// show ends the last line, as every file of lines does; that newline is
	// none of the last cell's.
	report, err := file.ApplyText(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), &notebook.ApplyOptions{Format: f.format.Format})
	if err != nil {
		return err
	}
	for _, line := range report.Doubtful {
		a.Err.Lines(fmt.Sprintf("coppice: line %d looks like a marker and is none; it was taken as source", line))
	}
	a.warnUnmatched(file.Path, before.Len(), report, f.dryRun)
	if f.dryRun {
		for line := range strings.Lines(notebook.Diff(before, file.Document).String()) {
			a.Out.Print(a.Style(a.Out).DiffLine(strings.TrimSuffix(line, "\n")) + "\n")
		}
		return nil
	}
	written, err := saveNotebook(ctx, file)
	if err != nil {
		return err
	}
	if !written {
		a.Out.Lines("nothing to change")
		return nil
	}
	a.Out.Lines(applied(report))
	return nil
}

// warnUnmatched tells of markers that go back to no cell: mostly a number was mistyped, and
// what the cell has that was meant is lost once the text is applied.
func (a *app) warnUnmatched(path string, cells int, report *notebook.ApplyReport, dryRun bool) {
	for _, m := range report.Unmatched {
		why := fmt.Sprintf("but %s has cells 0 to %d", path, cells-1)
		if m.Taken {
			why = "as a line above does"
		}
		a.Err.Lines(fmt.Sprintf("coppice: line %d names cell:%d, %s; it makes a new cell, without outputs, id and metadata", m.Line, m.Index, why))
	}
	if len(report.Unmatched) == 0 || len(report.Deleted) == 0 {
		return
	}
	gone := make([]string, len(report.Deleted))
	for i, n := range report.Deleted {
		gone[i] = strconv.Itoa(n)
	}
	next := "take " + path + " back from where you keep versions, mend the number and apply the text again"
	if dryRun {
		next = "mend it before you apply the text"
	}
	a.Err.Lines(fmt.Sprintf("coppice: no line names cell %s, so that what is there goes; if a number was mistyped, %s", strings.Join(gone, ", "), next))
}

// applied says what an edited text did.
func applied(r *notebook.ApplyReport) string {
	var edited, moved, retyped, inserted, stale int
	for _, c := range r.Cells {
		switch {
		case c.Was < 0:
			inserted++
		case c.Edited:
			edited++
		}
		if c.Retyped {
			retyped++
		}
		if c.Moved {
			moved++
		}
		if c.Stale {
			stale++
		}
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{edited, "edited"}, {inserted, "new"}, {len(r.Deleted), "deleted"}, {moved, "moved"}, {retyped, "of another type"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	text := render.Number(len(r.Cells), "cell")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if stale > 0 {
		text += fmt.Sprintf("; outputs of %s are stale (--clear-stale clears them)", render.Number(stale, "cell"))
	}
	return text
}

// editInEditor lets a person edit the text.
func (a *app) editInEditor(ctx context.Context, path string, f applyFlags) error {
	editor := a.Getenv("VISUAL")
	if editor == "" {
		editor = a.Getenv("EDITOR")
	}
	words := strings.Fields(editor)
	if len(words) == 0 {
		return console.Usagef("no editor: set VISUAL or EDITOR, or give the text on standard input")
	}
	file, err := notebook.OpenOrNew(ctx, path)
	if err != nil {
		return err
	}
	text := file.Text()
	dir, err := os.MkdirTemp("", "coppice-edit-")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+".py")
	if text != "" {
		text += "\n"
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], name)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = a.In, a.Out.W, a.Err.W, a.Env
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("run the editor %s: %w; nothing was changed", words[0], err), os.RemoveAll(dir))
	}
	edited, err := console.ReadText(ctx, name)
	if err != nil {
		return err
	}
	if err := a.applyTo(ctx, file, string(edited), f); err != nil {
		return fmt.Errorf("%w; the edited text is in %s", err, name)
	}
	return os.RemoveAll(dir)
}
