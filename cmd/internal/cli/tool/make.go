package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func (a *app) newCommand() *cobra.Command {
	return console.Command{
		Use:   "new ID",
		Short: "Write the files of a new tool",
		Long: `Write the files of a new tool into a folder named ID in the folder of tools. It
runs as it is and needs nothing but Python: change main.py, and tool.json with
it. Nothing is written over.`,
		Args:   console.Arguments{Least: 1, Most: 1, Wants: "new takes the id of the new tool, as in: coppice tool new word-count"},
		Errors: a.failure,
		Run: func(_ context.Context, args []string) error {
			box, err := a.toolbox()
			if err != nil {
				return err
			}
			dir, err := box.New(args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.WriteJSON(map[string]string{"id": args[0], "dir": dir})
			}
			a.Out.Lines(dir, a.here("next: coppice tool setup "+args[0]+", then coppice tool validate "+args[0]))
			return nil
		},
	}.Make()
}

func (a *app) setupCommand() *cobra.Command {
	var python string
	var all, force, quiet bool
	cmd := console.Command{
		Use:   "setup ID | --all",
		Short: "Make the virtual environment of a tool",
		Long: `Make the virtual environment .venv in the tool's folder, with the packages that
requirements.txt pins, checked by hash when it has hashes, or else those that
pyproject.toml depends on. When it is there and matches, nothing is done.`,
		Args:   console.Arguments{Most: console.Any},
		Errors: a.failure,
		Run: func(ctx context.Context, args []string) error {
			if all == (len(args) > 0) || len(args) > 1 {
				return console.Usagef("setup takes the id of one tool, or --all")
			}
			box, err := a.toolbox()
			if err != nil {
				return err
			}
			dirs, err := a.dirs(ctx, box, args)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if err := a.setupTool(ctx, box, dir, python, force, quiet, a.json); err != nil {
					return err
				}
			}
			return nil
		},
	}.Make()
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "make those of all tools in the folder")
	flags.BoolVar(&force, "force", false, "make it anew, whatever is there")
	flags.BoolVar(&quiet, "quiet-if-ready", false, "print nothing when there is nothing to do")
	flags.StringVar(&python, "python", "", "the Python interpreter to make it with (default: python3)")
	return cmd
}

func (a *app) setupTool(ctx context.Context, box *launcher.Toolbox, dir, python string, force, quiet, asJSON bool) error {
	waiting := a.StartProgress("making the environment of "+filepath.Base(dir), asJSON)
	defer waiting.Done()
	r, err := box.Setup(ctx, dir, python, force, func(line string) {
		waiting.Stage("making the environment of "+filepath.Base(dir), strings.TrimSpace(line))
	})
	waiting.Done()
	switch {
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled, Err: errors.New("the set-up was interrupted; run it again")}
	case err != nil:
		return err
	case asJSON:
		return a.WriteJSON(r)
	case r.Changed:
		a.Out.Lines(fmt.Sprintf("%s: ready after %s, %s", r.Dir, render.Duration(r.Elapsed), render.Number(r.Packages, "requirement")))
	case !quiet:
		a.Out.Lines(r.Dir + ": ready, nothing to do")
	}
	return nil
}

// folder is that of a tool, which may be broken.
func folder(ctx context.Context, box *launcher.Toolbox, id string) (string, error) {
	e, err := box.Find(ctx, id)
	if told, ok := errors.AsType[*messages.ToolError](err); ok && told.Kind == messages.ToolErrorSpec {
		return e.Dir, nil
	}
	return e.Dir, err
}

func (a *app) validateCommand() *cobra.Command {
	all := false
	cmd := console.Command{
		Use:   "validate ID | --all",
		Short: "Check a tool, from its files to the end of its process",
		Long: `Make twelve checks: the files, tool.json, the environment, the start, /schema
against tool.json, a run with sample inputs, its outputs, the stream, the
fixtures in the folder reference, and the end. The exit code is 1 when a check
failed; warnings do not count. With --all and --json there is one report a line.

The type of an input in tool.json is one of text, textarea, code, markdown,
number, slider, checkbox, toggle, select, radio, multiselect, tags, autocomplete,
date, time, datetime, date_range, file, image, audio, colour, json, table,
map_point, map_bbox, map_polygon, map_multipoint and hidden.`,
		Args:   console.Arguments{Most: console.Any},
		Errors: a.failure,
		Run: func(ctx context.Context, args []string) error {
			if all == (len(args) > 0) || len(args) > 1 {
				return console.Usagef("validate takes the id of one tool, or --all; coppice tool list shows them")
			}
			box, err := a.toolbox()
			if err != nil {
				return err
			}
			dirs, err := a.dirs(ctx, box, args)
			if err != nil {
				return err
			}
			failed := false
			for i, dir := range dirs {
				if i > 0 && !a.json {
					a.Out.Lines("")
				}
				report, err := a.validateTool(ctx, box, dir)
				if err != nil {
					return err
				}
				failed = failed || report.Overall == "fail"
			}
			if failed {
				return &console.Exit{Code: console.Raised}
			}
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&all, "all", false, "check all tools in the folder, one after the other")
	return cmd
}

// dirs is the folder of the tool that args names, or those of all tools.
func (a *app) dirs(ctx context.Context, box *launcher.Toolbox, args []string) ([]string, error) {
	if len(args) > 0 {
		dir, err := folder(ctx, box, args[0])
		return []string{dir}, err
	}
	entries, err := box.List(ctx)
	if err != nil {
		return nil, err
	}
	dirs := make([]string, 0, len(entries))
	for _, e := range entries {
		dirs = append(dirs, e.Dir)
	}
	return dirs, nil
}

func (a *app) validateTool(ctx context.Context, box *launcher.Toolbox, dir string) (launcher.Report, error) {
	var progress func(launcher.Check)
	if !a.json {
		progress = func(c launcher.Check) { a.Out.Lines(a.checkLines(a.Style(a.Out), c)...) }
	}
	report, err := box.Validate(ctx, dir, progress)
	switch {
	case err != nil:
		return report, &console.Exit{Code: console.Cancelled, Err: err}
	case a.json:
		err = a.WriteJSON(report)
	default:
		a.Out.Lines("", summary(report))
	}
	return report, err
}

func (a *app) checkLines(s render.Style, c launcher.Check) []string {
	lines := []string{s.Fit(fmt.Sprintf("%-4s  %-24s  %s", c.Status, c.Name, a.here(c.Message)))}
	for _, d := range c.Details {
		lines = append(lines, s.Fit("      "+a.here(d)))
	}
	return lines
}

func summary(r launcher.Report) string {
	count := map[string]int{}
	for _, c := range r.Checks {
		count[string(c.Status)]++
	}
	text := r.ToolID + ": " + string(r.Overall)
	for _, status := range []string{"pass", "warn", "fail", "skip"} {
		if count[status] > 0 {
			text += fmt.Sprintf(", %d %s", count[status], status)
		}
	}
	return text
}

// forShell writes a word as a POSIX shell reads it.
func forShell(s string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+=:@%,", r) || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
