package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// words are the values of flags that have few, by the flag's name; those of one
// command, by its path and the flag's name, come before.
var words = map[string][]string{
	"backend":               {"auto", "gateway", "runner"},
	"coppice bench backend": {"runner", "gateway", "fake"},
	"coppice mcp tools":     {"both", "ipy-only", "bash-only"},
	"format":                {"auto", "view", "percent"},
	"isolation":             console.Isolations,
	"kernel-mode":           {"session", "per-call"},
	"style":                 {"python", "eval", "repl"},
	"to":                    {"html", "md", "py"},
}

// folders are the flags that want one.
var folders = []string{"cwd", "dir", "folder", "images", "isolation-read", "isolation-write", "tool-dir", "tools"}

// complete tells a shell what it may offer behind the commands below cmd and their
// flags: a fixed word, a folder, or files with an extension.
func complete(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		complete(c)
	}
	for name, values := range words {
		name = name[strings.LastIndexByte(name, ' ')+1:]
		if own := words[cmd.CommandPath()+" "+name]; own != nil {
			values = own
		} else if words[name] == nil {
			continue
		}
		if cmd.LocalNonPersistentFlags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // a second time changes nothing
		}
	}
	for _, name := range folders {
		if words[cmd.CommandPath()+" "+name] == nil {
			_ = cmd.MarkFlagDirname(name) // it fails when there is no such flag
			_ = cmd.MarkPersistentFlagDirname(name)
		}
	}
	if files := filesOf(cmd.CommandPath()); files != nil {
		cmd.ValidArgsFunction = cobra.FixedCompletions(files, cobra.ShellCompDirectiveFilterFileExt)
	}
}

// completionCommand adds the command for shells, which refuses a shell that it does not
// know.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.RunE = func(cmd *cobra.Command, _ []string) error { return console.Failure(cmd.Help()) }
		}
	}
}

// filesOf are the extensions of the files that a command takes.
func filesOf(path string) []string {
	switch {
	case path == "coppice run":
		return []string{"py", "ipynb"}
	case path == "coppice export", strings.HasPrefix(path, "coppice notebook "):
		return []string{"ipynb"}
	default:
		return nil
	}
}
