package workspace

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

func (a *app) listCommand() *cobra.Command {
	var labels []string
	var owner string
	cmd := console.Command{
		Use: "list", Short: "List the workspaces", Errors: console.ServerFailure,
		Run: func(ctx context.Context, _ []string) error {
			f := client.FilterWorkspaces{Labels: map[string]string{}, Owner: owner}
			for _, text := range labels {
				name, value, _ := strings.Cut(text, "=")
				if name == "" {
					return console.Usagef("--label wants NAME=VALUE, or NAME for any value, not %q", text)
				}
				f.Labels[name] = value
			}
			return a.WithServer(func(c *client.Client) error {
				list, err := c.Workspaces(ctx, f)
				if err != nil {
					return err
				}
				if a.json {
					return a.WriteJSON(map[string]any{"workspaces": list})
				}
				switch {
				case len(list) == 0 && len(labels) == 0 && owner == "":
					a.Out.Lines("there is no workspace; coppice workspace create NAME makes one")
					return nil
				case len(list) == 0:
					a.Out.Lines("there is no such workspace")
					return nil
				}
				rows := [][]string{{"workspace", "in use", "ends", "isolation", "labels", "folder"}}
				for _, w := range list {
					rows = append(rows, []string{w.Name, strconv.Itoa(w.InUse), ends(w), w.Isolation, labelText(w.Labels), w.Folder})
				}
				a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
				return nil
			})
		},
	}.Make()
	cmd.Flags().StringArrayVar(&labels, "label", nil, "only those with this label, NAME=VALUE, or NAME for any value; may be repeated")
	cmd.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	return cmd
}

// labelText is labels in one line.
func labelText(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, ",")
}

// ends says when a workspace ends by itself.
func ends(w client.Workspace) string {
	var parts []string
	if !w.EndAt.IsZero() {
		parts = append(parts, "at "+w.EndAt.Local().Format(time.DateTime))
	}
	if w.IdleEnd > 0 {
		parts = append(parts, fmt.Sprintf("idle for %v", time.Duration(w.IdleEnd*float64(time.Second))))
	}
	return strings.Join(parts, ", or ")
}

// one is the argument of a command about one workspace.
func one(name string) console.Arguments {
	return console.Arguments{Least: 1, Most: 1, Wants: name + " wants the name of one workspace; coppice workspace list shows them"}
}

// showWorkspace writes what is known of one.
func (a *app) showWorkspace(w client.Workspace) {
	say := func(name, text string) {
		if text != "" {
			a.Out.Lines(fmt.Sprintf("%-10s %s", name, text))
		}
	}
	say("workspace", w.Name)
	say("folder", w.Folder)
	say("owner", w.Owner)
	say("labels", labelText(w.Labels))
	say("made", w.Made.Local().Format(time.DateTime))
	say("ends", ends(w))
	if w.Quota > 0 {
		say("quota", render.Bytes(w.Quota))
	}
	say("limits", limitText(w.Limits))
	for i, line := range totalLines(w) {
		name := ""
		if i == 0 {
			name = "together"
		}
		say(name, line)
	}
	say("isolation", w.Isolation)
	say("", w.IsolationText)
	for i, r := range w.Refused {
		name := ""
		if i == 0 {
			name = "refused"
		}
		say(name, fmt.Sprintf("%s, %s, at last %s: %s", r.Host, times(int64(r.Times)), r.Last.Local().Format(time.DateTime), cmp.Or(r.Why, "it may not be reached")))
	}
	if w.Pinned {
		say("pinned", "it is spared when another one needs a place")
	}
	use := fmt.Sprintf("%d calls, processes and transfers go on", w.InUse)
	if w.InUse == 1 {
		use = "one call, process or transfer goes on"
	}
	say("in use", use)
}

// times is how often something was.
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// limitText is limits in one line.
func limitText(l client.WorkspaceLimits) string {
	var parts []string
	add := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(l.Memory > 0, "memory %s", render.Bytes(l.Memory))
	add(l.CPU > 0, "processor time %v s", l.CPU)
	add(l.Runtime > 0, "run time %v s", l.Runtime)
	add(l.Files > 0, "files %d", l.Files)
	add(l.Processes > 0, "processes %d", l.Processes)
	add(l.Processors > 0, "processors %v", l.Processors)
	return strings.Join(parts, ", ")
}

// totalLines are the limits of everything together, one in a line, with what is used of each,
// and what keeps to them.
func totalLines(w client.Workspace) []string {
	t, u := w.Total, w.Usage
	used := func(text string) string {
		if u == nil || u.At.IsZero() {
			return "not looked at yet"
		}
		return text
	}
	if u == nil {
		u = &client.WorkspaceUsage{}
	}
	var lines []string
	add := func(given bool, format string, args ...any) {
		if given {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(t.Memory > 0, "memory %s (%s)", render.Bytes(t.Memory), used(render.Bytes(u.Memory)+" used"))
	add(t.Processes > 0, "processes %d (%s)", t.Processes, used(fmt.Sprintf("%d live", u.Processes)))
	add(t.Processors > 0, "processors %v", t.Processors)
	add(w.Kept != "", "kept by %s", w.Kept)
	add(t.Output > 0, "output %s of each cell and process, kept where it is read", render.Bytes(t.Output))
	add(u.Ends > 0, "ended for a limit %s, at last: %s", times(int64(u.Ends)), u.Last)
	return lines
}

// argument is how one argument of a program is shown: quoted where it is not a plain word, so
// that it stays in its line.
func argument(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || r == '"' || r == '\\' || !strconv.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// processLine is a process in one line.
func processLine(p client.Process) string {
	state := string(p.State)
	if p.Exit != nil {
		state = fmt.Sprintf("exit %d", p.Exit.Code)
		if p.Exit.Signal != "" {
			state = p.Exit.Signal
		}
	}
	args := make([]string, 0, len(p.Args))
	for _, arg := range p.Args {
		args = append(args, argument(arg))
	}
	return fmt.Sprintf("  %-4s %-8s %d  %s", p.ID, state, p.PID, strings.Join(args, " "))
}

func (a *app) endCommand() *cobra.Command {
	return console.Command{
		Use: "end WORKSPACE", Short: "End a workspace: its sessions, its processes, and its folder unless that was given", Errors: console.ServerFailure, Args: one("end"),
		Run: func(ctx context.Context, args []string) error {
			return a.WithServer(func(c *client.Client) error {
				if err := c.EndWorkspace(ctx, args[0]); err != nil {
					return err
				}
				if a.json {
					return a.WriteJSON(map[string]any{"workspace": args[0], "done": "end"})
				}
				a.Out.Lines(args[0] + " has ended")
				return nil
			})
		},
	}.Make()
}
