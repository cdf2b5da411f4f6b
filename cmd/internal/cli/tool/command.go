package tool

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// Command is coppice tool, with the commands below it.
func Command(c *console.Console) *cobra.Command {
	a := &app{Console: c}
	cmd := console.Command{
		Use:   "tool",
		Short: "Make, check and run tools: programs that answer HTTP and stay warm",
		Long: `A tool is a folder with a tool.json and a program in a virtual environment of its
own. The program answers HTTP on the loopback interface; it is started by its
first run and stays warm for the next.

All commands work by themselves. When a coppice serve runs for the same folder,
they ask it, so that a tool that is warm there is used. Its folder is the one that
is meant, unless --tools or COPPICE_TOOLS names another.`,
		Below: []*cobra.Command{
			a.newCommand(), a.setupCommand(), a.validateCommand(), a.listCommand(),
			a.runCommand(false), a.runCommand(true), a.logsCommand(), a.stateCommand(),
			a.pinCommand(true), a.pinCommand(false), a.stopCommand(), a.prewarmCommand(),
		},
	}.Make()
	for _, c := range cmd.Commands() {
		if strings.Contains(c.Use, " ID") && c.Name() != "new" {
			c.ValidArgsFunction = a.completeID
		}
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.dir, "tools", "", "the folder of tools (default: COPPICE_TOOLS, else that of the coppice serve that runs, else ~/.coppice/tools)")
	flags.BoolVar(&a.alone, "no-server", false, "do not use a coppice serve that runs")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// completeID offers a shell the tools of the folder, the broken ones too: they can be
// validated. It reads files and asks no server, for it has to be quick.
func (a *app) completeID(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	box, err := a.toolbox()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // a shell shows nothing of an error
	}
	entries, err := box.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids := make([]cobra.Completion, 0, len(entries))
	for _, e := range entries {
		about := "broken"
		if e.Tool != nil {
			about = e.Tool.Name
		}
		ids = append(ids, cobra.CompletionWithDesc(e.ID, about))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
