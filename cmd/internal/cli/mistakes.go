package cli

import (
	"cmp"
	"context"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// helpCommand is help, which says so when there is nothing to say.
func helpCommand() *cobra.Command {
	var cmd *cobra.Command
	cmd = console.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about a command, or about exit-codes, environment, files",
		Args:  console.Arguments{Most: console.Any},
		Run: func(_ context.Context, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				near := ""
				if found != nil && len(rest) > 0 {
					near = meant(nearest(rest[0], names(found, true)))
				}
				return console.Usagef("there is no help about %q%s", strings.Join(args, " "), near)
			}
			return found.Help()
		},
	}.Make()
	return cmd
}

var (
	unknownCommand = regexp.MustCompile(`^unknown command "([^"]*)"`)
	unknownFlag    = regexp.MustCompile(`^unknown flag: --(\S+)`)
	exclusive      = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	wrongValue     = regexp.MustCompile(`^(invalid argument .* for .* flag): strconv\..*$`)
)

// strayCommand is the word of a command line that stands where a command does and is
// none, "" when there is no such word. Flags behind it are not looked at: they may be
// those of the command that was meant.
func strayCommand(root *cobra.Command, args []string) string {
	found, rest, err := root.Find(args)
	if err != nil || !found.HasSubCommands() || len(rest) == 0 || rest[0] == "" || rest[0][0] == '-' {
		return ""
	}
	return rest[0]
}

// mistake is the text about a wrong command line, with what may have been meant.
func mistake(cmd *cobra.Command, text string) string {
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := exclusive.FindStringSubmatch(text); m != nil {
		return "--" + strings.Join(strings.Fields(m[1]), " and --") + " exclude each other"
	}
	near := ""
	if m := unknownCommand.FindStringSubmatch(text); m != nil {
		near = nearest(m[1], names(cmd, false))
	} else if m := unknownFlag.FindStringSubmatch(text); m != nil {
		near = nearestFlag(m[1], cmd.Flags())
	}
	return text + meant(near)
}

// names are those of the commands below cmd, and of topics.
func names(cmd *cobra.Command, withTopics bool) []string {
	var all []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || withTopics && c.IsAdditionalHelpTopicCommand() {
			all = append(all, c.Name())
		}
	}
	if !cmd.HasParent() {
		all = append(all, "help") // which cobra does not count among them
	}
	return all
}

// otherwise are names that other programs have for flags of these.
var otherwise = map[string]string{"port": "addr", "host": "addr", "bind": "addr", "address": "addr", "cpus": "max-processors"}

// nearestFlag is the flag that text may stand for, with its dashes, "" for none: one that
// is written nearly so, that other programs call so, or that ends with it as --max-memory
// does with memory.
func nearestFlag(text string, flags *pflag.FlagSet) string {
	var all []string
	last := ""
	flags.VisitAll(func(f *pflag.Flag) {
		all = append(all, f.Name)
		if strings.HasSuffix(f.Name, "-"+text) {
			last = f.Name
		}
	})
	near := nearest(text, all)
	if name := otherwise[text]; near == "" && flags.Lookup(name) != nil {
		near = name
	}
	if near = cmp.Or(near, last); near == "" {
		return ""
	}
	return "--" + near
}

// meant asks whether near was meant; "" is nothing to ask about.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// nearest is the name that is at most two letters and half its length away, or that begins with text.
func nearest(text string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		d := distance(text, n)
		if len(text) > 2 && strings.HasPrefix(n, text) {
			d = min(d, 2)
		}
		if d < least && 2*d <= len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace; two neighbours that
// changed places count as one.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
