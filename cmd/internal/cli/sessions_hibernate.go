package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

func (a *app) sessionsHibernateCommand(f *sessionsFlags) *cobra.Command {
	return a.sessionCommand(f, "hibernate", "Keep a session on disk and end its kernel; its next call restores it", func(ctx context.Context, c *client.Client, key messages.SessionKey) error {
		kept, err := c.Hibernate(ctx, key)
		if err != nil {
			return err
		}
		if f.json {
			return a.WriteJSON(kept)
		}
		a.Out.Lines(fmt.Sprintf("%s is hibernated: %s on disk", render.Name(key.Session), render.Bytes(kept.Bytes)))
		a.Out.Lines(memoryLines(kept.Memory)...)
		return nil
	})
}

// hibernatedLine is a session that is kept on disk as one line.
func hibernatedLine(s client.Session) string {
	return fmt.Sprintf("%-20s %-10s %s on disk since %s  %s", render.Name(s.Session), s.State, render.Bytes(s.Kept.Bytes), s.Since.Local().Format(time.DateTime), render.Name(s.Cwd))
}

// memoryLines say what becomes of a session's names: those that are kept in a line, and
// one for each that is changed or lost.
func memoryLines(m messages.Memory) []string {
	var lines []string
	if len(m.Kept) > 0 {
		lines = append(lines, "  kept     "+strings.Join(m.Kept, ", "))
	}
	for _, c := range m.Changed {
		lines = append(lines, fmt.Sprintf("  changed  %s (%s): %s", c.Name, c.Type, c.Change))
	}
	for _, l := range m.Lost {
		lines = append(lines, fmt.Sprintf("  lost     %s (%s): %s", l.Name, l.Type, l.Reason))
	}
	return lines
}
