package reference

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands is the page of all commands that the help shows, with their flags.
func Commands(root *cobra.Command) []byte {
	p := newPage("Commands", "What `coppice help` says of each command. [commands.md](../commands.md) tells of them in short.")
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		p.command(cmd)
		for _, c := range cmd.Commands() {
			if Shown(c) && !c.IsAdditionalHelpTopicCommand() {
				add(c)
			}
		}
	}
	add(root)
	return p.text()
}

// Shown reports whether the help lists a command.
func Shown(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand()
}

func (p *page) command(cmd *cobra.Command) {
	p.heading(2, cmd.CommandPath())
	p.line(plain(cmd.Short) + ".")
	p.line("")
	if cmd.Runnable() {
		p.block("text", cmd.UseLine())
		p.line("")
	}
	if len(cmd.Aliases) > 0 {
		p.line("Also: " + code(strings.Join(cmd.Aliases, ", ")) + ".")
		p.line("")
	}
	if cmd.Long != "" {
		p.block("text", cmd.Long)
		p.line("")
	}
	if cmd.Example != "" {
		p.line("Examples:")
		p.line("")
		p.block("text", unindent(cmd.Example))
		p.line("")
	}
	var rows [][]string
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { rows = addFlag(rows, f) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { rows = addFlag(rows, f) })
	if len(rows) > 0 {
		p.table([]string{"flag", "what it does"}, rows)
	}
}

func addFlag(rows [][]string, f *pflag.Flag) [][]string {
	if f.Hidden || f.Name == "help" {
		return rows
	}
	kind, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if kind != "" {
		name += " " + kind
	}
	switch f.DefValue {
	case "", "false", "0", "0s", "[]", "-1":
	default:
		if !strings.Contains(usage, "(default") {
			usage += " (default: " + f.DefValue + ")"
		}
	}
	return append(rows, []string{code(name), plain(usage)})
}

// unindent takes the spaces away that all lines begin with.
func unindent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	least := -1
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if n := len(l) - len(strings.TrimLeft(l, " ")); least < 0 || n < least {
			least = n
		}
	}
	for i, l := range lines {
		lines[i] = l[min(max(least, 0), len(l)):]
	}
	return strings.Join(lines, "\n")
}

// Topics is the page of the help topics: the environment variables, the exit codes, the
// files, and whatever else there is.
func Topics(root *cobra.Command) []byte {
	p := newPage("Environment variables, exit codes, files", "What `coppice help TOPIC` says.")
	for _, c := range root.Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			p.heading(2, c.Name())
			p.line(plain(c.Short) + ".")
			p.line("")
			p.block("text", c.Long)
		}
	}
	return p.text()
}
