package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/actors/launcher"
)

// ToolDir is the flag of commands whose host may keep tools warm.
type ToolDir string

// Add adds the flag to a command.
func (d *ToolDir) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "tool-dir", "", "a folder of tools that code calls as tool.NAME(...), kept warm meanwhile (see coppice tool)")
}

// Tools is the option of the host, nil when the flag was not given. A folder that is not
// there is a UsageError: whoever names one wants what is in it. What in it cannot be used is
// told.
func (c *Console) Tools(ctx context.Context, d ToolDir) (*launcher.Options, error) {
	if d == "" {
		return nil, nil
	}
	if _, err := os.Stat(string(d)); errors.Is(err, fs.ErrNotExist) {
		return nil, Usagef("--tool-dir: there is no folder %s; coppice tool new --tools makes one, with a tool in it", d)
	}
	if err := c.TellTools(ctx, string(d)); err != nil {
		return nil, err
	}
	return &launcher.Options{Dir: string(d)}, nil
}

// TellTools says which tools of a folder cannot be used, "" being the default one; of one
// that was named also that it has none. The error is a UsageError.
func (c *Console) TellTools(ctx context.Context, dir string) error {
	box, err := launcher.OpenToolbox(launcher.Options{Dir: dir, Env: c.Env})
	if err != nil {
		return UsageError{err}
	}
	entries, err := box.List(ctx)
	if err != nil {
		return UsageError{err}
	}
	some := false
	for _, e := range entries {
		some = some || e.Err == nil || e.Broken()
		if e.Broken() {
			c.Err.Lines(fmt.Sprintf("coppice: the tool %s cannot be used: %v", e.ID, e.Err))
		}
	}
	if dir != "" && !some {
		c.Err.Lines("coppice: there are no tools in " + box.Dir())
	}
	return nil
}
