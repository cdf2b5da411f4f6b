package tool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
)

// noServer is what is said where only a server could have had something to say.
const noServer = "no coppice serve runs for this folder of tools"

func (a *app) listCommand() *cobra.Command {
	return console.Command{
		Use:    "list",
		Short:  "List the tools, the broken ones with what is wrong",
		Errors: a.failure,
		Run: func(ctx context.Context, _ []string) error {
			list, dir, err := a.list(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.WriteJSON(list)
			}
			if len(list) == 0 {
				a.Out.Lines("there are no tools in "+dir, a.here("coppice tool new ID makes one"))
				return nil
			}
			rows := [][]string{{"id", "name", "status", "validation", ""}}
			for _, s := range list {
				note, more, cut := strings.Cut(s.Problem, "; ")
				if cut && s.Validation == "fail" {
					note = fmt.Sprintf("%s (and %d more: %s)", note, 1+strings.Count(more, "; "), a.here("coppice tool validate "+s.ID))
				}
				if s.Pinned {
					note = strings.TrimSpace("pinned " + note)
				}
				rows = append(rows, []string{s.ID, s.Name, s.Status, s.Validation, note})
			}
			a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
			return nil
		},
	}.Make()
}

func (a *app) list(ctx context.Context) (list []client.Tool, dir string, err error) {
	box, err := a.toolbox()
	if err != nil {
		return nil, "", err
	}
	if c := a.server(ctx, box.Dir()); c != nil {
		defer c.Close()
		list, err = c.Tools(ctx)
		return list, box.Dir(), a.failure(err)
	}
	entries, err := box.List(ctx)
	if err != nil {
		return nil, "", err
	}
	pins, err := box.Pinned()
	var state messages.ToolsState
	for _, id := range pins {
		state.Tools = append(state.Tools, messages.ToolState{ID: id, Pinned: true})
	}
	if err != nil {
		return nil, "", err
	}
	checks, err := box.Validated(entries)
	return toolapi.Summarise(entries, state, checks), box.Dir(), err
}

func (a *app) stateCommand() *cobra.Command {
	return console.Command{
		Use:   "state",
		Short: "Show which tools are warm",
		Long: `Show which tools are warm in the coppice serve that runs for this folder. With
--json everything that the launcher knows is printed, which a server shows in
developer mode only.`,
		Errors: a.failure,
		Run:    func(ctx context.Context, _ []string) error { return a.state(ctx) },
	}.Make()
}

func (a *app) state(ctx context.Context) error {
	box, err := a.toolbox()
	if err != nil {
		return err
	}
	c := a.server(ctx, box.Dir())
	if c == nil {
		if a.json {
			return a.WriteJSON(messages.ToolsState{Tools: []messages.ToolState{}})
		}
		a.Out.Lines("nothing is warm: " + noServer)
		return nil
	}
	defer c.Close()
	if a.json {
		s, err := c.ToolsState(ctx)
		if err != nil {
			return err
		}
		return a.WriteJSON(s)
	}
	h, err := c.ToolsHealth(ctx)
	if err != nil {
		return err
	}
	a.Out.Lines(fmt.Sprintf("%s, up for %v, %s warm", c.URL(), time.Duration(h.Uptime*float64(time.Second)).Round(time.Second), render.Number(len(h.Warm), "tool")))
	rows := [][]string{{"id", "state", "pid", "port", "warm for", "used", "memory", "runs", ""}}
	for _, t := range h.Warm {
		note, memory := "", "" // the memory is looked at once in a while
		if t.RSS > 0 {
			memory = render.Bytes(t.RSS)
		}
		if t.Pinned {
			note = "pinned"
		}
		rows = append(rows, []string{
			t.ID, string(t.State), strconv.Itoa(t.PID), strconv.Itoa(t.Port), since(t.Started), since(t.LastUsed), memory, strconv.Itoa(t.Runs), note,
		})
	}
	if len(h.Warm) > 0 {
		a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
	}
	return nil
}

func (a *app) logsCommand() *cobra.Command {
	limit := 0
	cmd := console.Command{
		Use:    "logs ID",
		Short:  "Show the end of what a tool wrote to standard error",
		Args:   oneTool("logs"),
		Errors: a.failure,
		Run: func(ctx context.Context, args []string) error {
			box, err := a.toolbox()
			if err != nil {
				return err
			}
			if _, err := folder(ctx, box, args[0]); err != nil {
				return err
			}
			c := a.server(ctx, box.Dir())
			if c == nil {
				return fmt.Errorf("there are no logs: %s; a run without one shows them when it fails", noServer)
			}
			defer c.Close()
			logs, err := c.ToolLogs(ctx, args[0], limit)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.WriteJSON(logs)
			}
			a.Out.Lines(logs.Lines...)
			return nil
		},
	}.Make()
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "the last so many lines (default: all that are kept)")
	return cmd
}

func (a *app) pinCommand(on bool) *cobra.Command {
	what, said := "pin", "pinned"
	c := console.Command{
		Use:   "pin ID",
		Short: "Keep a tool from making room for others",
		Long: `Keep a tool from being ended to make room for another one. It is still ended
when nobody uses it. A pin is kept in the folder of tools.`,
	}
	if !on {
		what, said = "unpin", "not pinned"
		c = console.Command{Use: "unpin ID", Short: "Let a tool make room for others again"}
	}
	c.Args, c.Errors = oneTool(what), a.failure
	c.Run = func(ctx context.Context, args []string) error {
		box, err := a.toolbox()
		if err != nil {
			return err
		}
		id := args[0]
		if c := a.server(ctx, box.Dir()); c != nil {
			defer c.Close()
			err = c.PinTool(ctx, id, on)
		} else {
			err = box.Pin(ctx, id, on)
		}
		if err != nil {
			return err
		}
		if a.json {
			return a.WriteJSON(map[string]any{"tool_id": id, "pinned": on})
		}
		a.Out.Lines(id + " is " + said)
		return nil
	}
	return c.Make()
}

func (a *app) stopCommand() *cobra.Command {
	return console.Command{
		Use:    "stop ID",
		Short:  "End the process of a tool; its next run starts it again",
		Args:   oneTool("stop"),
		Errors: a.failure,
		Run: func(ctx context.Context, args []string) error {
			box, err := a.toolbox()
			if err != nil {
				return err
			}
			answer := client.ToolStopped{Status: "stopped", ToolID: args[0]}
			note := ": " + noServer
			if c := a.server(ctx, box.Dir()); c != nil {
				defer c.Close()
				if answer, err = c.StopTool(ctx, args[0]); err != nil {
					return err
				}
				note = ""
			}
			switch {
			case a.json:
				return a.WriteJSON(answer)
			case answer.WasRunning:
				a.Out.Lines(args[0] + " was stopped")
			default:
				a.Out.Lines(args[0] + " did not run" + note)
			}
			return nil
		},
	}.Make()
}

func (a *app) prewarmCommand() *cobra.Command {
	return console.Command{
		Use:   "prewarm ID",
		Short: "Start a tool before anybody asks for it",
		Long: `Start a tool in the coppice serve that runs for this folder, unless another one
would have to make room. Without a server the tool is started, to see that it
does, and ended again.`,
		Args:   oneTool("prewarm"),
		Errors: a.failure,
		Run:    func(ctx context.Context, args []string) error { return a.prewarmTool(ctx, args[0]) },
	}.Make()
}

func (a *app) prewarmTool(ctx context.Context, id string) error {
	box, err := a.toolbox()
	if err != nil {
		return err
	}
	if _, err := box.Find(ctx, id); err != nil {
		return err
	}
	if c := a.server(ctx, box.Dir()); c != nil {
		defer c.Close()
		q, err := c.PrewarmTool(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case a.json:
			return a.WriteJSON(q)
		case !q.Queued:
			return fmt.Errorf("%s was not started: %s", id, q.Reason)
		}
		a.Out.Lines(id + " is warm, or starts")
		return nil
	}
	return a.tryTool(ctx, id)
}

// tryTool starts a tool and ends it.
func (a *app) tryTool(ctx context.Context, id string) error {
	l, end, err := a.launcher(ctx)
	if err != nil {
		return err
	}
	defer end()
	waiting := a.StartProgress("starting "+id, a.json)
	defer waiting.Done()
	began := time.Now()
	if _, err := l.Prewarm(ctx, id); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return &console.Exit{Code: console.Cancelled}
		case <-tick.C:
		}
		s, err := l.State(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(s.Tools, func(t messages.ToolState) bool { return t.ID == id })
		switch {
		case i < 0:
		case s.Tools[i].Failure != nil:
			waiting.Done()
			a.Err.Print(a.errorText(&s.Tools[i].Failure.Error))
			return &console.Exit{Code: console.Lost}
		case s.Tools[i].State == messages.ChildIdle:
			waiting.Done()
			if a.json {
				return a.WriteJSON(messages.ToolQueued{Reason: noServer})
			}
			a.Out.Lines(fmt.Sprintf("%s starts within %s; it does not stay warm: %s", id, render.Duration(time.Since(began)), noServer))
			return nil
		}
	}
}
