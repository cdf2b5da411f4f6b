package tool

import (
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
they ask it, so that a tool that is warm there is used.`,
		Below: []*cobra.Command{
			a.newCommand(), a.setupCommand(), a.validateCommand(), a.listCommand(),
			a.runCommand(false), a.runCommand(true), a.logsCommand(), a.stateCommand(),
			a.pinCommand(true), a.pinCommand(false), a.stopCommand(), a.prewarmCommand(),
		},
	}.Make()
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.dir, "tools", "", "the folder of tools (default: COPPICE_TOOLS, else ~/.coppice/tools)")
	flags.BoolVar(&a.alone, "no-server", false, "do not use a coppice serve that runs")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}
