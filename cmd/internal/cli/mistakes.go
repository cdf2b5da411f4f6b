package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpCommand is help, which says so when there is nothing to say.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Help about a command, or about exit-codes, environment, files",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				return usagef("there is no help about %q", strings.Join(args, " "))
			}
			return failure(found.Help())
		},
	}
}

var (
	unknownCommand = regexp.MustCompile(`^unknown command "([^"]*)"`)
	unknownFlag    = regexp.MustCompile(`^unknown flag: --(\S+)`)
	wrongValue     = regexp.MustCompile(`^(invalid argument .* for .* flag): strconv\..*$`)
)

// mistake is the text about a wrong command line, with what may have been meant.
func mistake(cmd *cobra.Command, text string) string {
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	near := ""
	if m := unknownCommand.FindStringSubmatch(text); m != nil {
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		near = nearest(m[1], names)
	} else if m := unknownFlag.FindStringSubmatch(text); m != nil {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near = nearest(m[1], names); near != "" {
			near = "--" + near
		}
	}
	if near == "" {
		return text
	}
	return text + "; did you mean " + near + "?"
}

// nearest is the name that is at most two letters away, or that begins with text.
func nearest(text string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		d := distance(text, n)
		if len(text) > 2 && strings.HasPrefix(n, text) {
			d = min(d, 2)
		}
		if d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
