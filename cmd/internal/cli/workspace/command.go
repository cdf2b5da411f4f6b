package workspace

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// app is what the commands share: the console, and the flags of all of them.
type app struct {
	*console.Console
	json bool
}

// Command is coppice workspace, with the commands below it.
func Command(c *console.Console) *cobra.Command {
	a := &app{Console: c}
	cmd := console.Command{
		Use:     "workspace",
		Aliases: []string{"ws"},
		Short:   "Workspaces of a running coppice serve: a folder, sessions and processes that belong together",
		Long: `A workspace has a folder of its own, an environment, limits, an isolation and a
lifetime. What belongs to it ends with it: sessions (coppice run --session NAME
--workspace NAME), processes, and its folder, unless that was given.

All commands ask the coppice serve that runs. Paths of files are relative to the folder of
the workspace, and lead out of it by no means. A working directory (--cwd) is relative to
it, too, and may lie outside: what code can do there is up to the isolation.`,
		Example: `  coppice workspace create etl --quota 1G --idle-end 2h --label team=data
  coppice workspace put etl data
  coppice run --session clean --workspace etl -c 'import os; os.listdir("data")'
  coppice workspace exec etl -t -- bash
  coppice workspace get etl result.csv -
  coppice workspace end etl`,
		Below: []*cobra.Command{
			a.listCommand(), a.showCommand(), a.createCommand(), a.changeCommand(), a.endCommand(),
			a.filesCommand(), a.putCommand(), a.getCommand(), a.execCommand(),
		},
	}.Make()
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// pairs reads flags of the form NAME=VALUE.
func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // none were given
	}
	all := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, console.Usagef("--%s wants NAME=VALUE, not %q", flag, text)
		}
		all[name] = value
	}
	return all, nil
}
