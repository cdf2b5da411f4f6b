package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
)

// addRetention adds the flags that say which executions are kept that have ended.
func (f *serveFlags) addRetention(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.retention.Keep, "keep-executions", httpapi.DefaultKeep, "how many executions that have ended are kept, with their output, of each tenant too; of those whose end nobody has asked for, sixteen times as many")
	flags.Var((*console.Time)(&f.retention.KeepFor), "keep-executions-for", "for how long one that has ended is kept: seconds, or a time such as 30m (default: 24h)")
	flags.Int64Var(&f.retention.KeepBytes, "keep-executions-bytes", httpapi.DefaultKeepBytes, "how many bytes the output of all that are kept may have; the oldest are forgotten first")
}

func (f *serveFlags) checkRetention() error {
	if f.retention.KeepFor < 0 {
		return console.Usagef("--keep-executions-for must not be negative")
	}
	if f.retention.Keep < 1 || f.retention.KeepBytes < 1 {
		return console.Usagef("--keep-executions and --keep-executions-bytes must be at least 1, not %d and %d", f.retention.Keep, f.retention.KeepBytes)
	}
	return nil
}
