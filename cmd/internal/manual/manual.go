// Package manual writes the manual pages of a tree of commands: one for each command
// that is shown in the help, in section 1, and one for each help topic, in section 7.
//
// The help of the commands is plain text whose tables and examples are laid out with
// spaces. So the pages are made from that as it is: what is laid out stays so, and the
// rest flows. They depend on nothing but the commands, the version and the date that is
// given, and are the same bytes each time.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Options say what stands on every page. All are required.
type Options struct {
	// Version is that of the program.
	Version string
	// Date is the day that the pages are of.
	Date time.Time
}

// The sections of a manual.
const (
	commands = "1"
	topics   = "7"
)

// Page is one manual page.
type Page struct {
	// Name is that of its file: coppice-run.1.
	Name string
	// Text is what is in it, as groff reads it.
	Text []byte
}

// Pages returns the pages of root and of all commands and topics below it, in the order
// in which the help lists them.
func Pages(root *cobra.Command, o Options) []Page {
	var list []Page
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		if !shown(cmd) && cmd != root {
			return
		}
		list = append(list, Page{Name: title(cmd) + "." + section(cmd), Text: page(cmd, o)})
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(root)
	return list
}

// Write writes the pages into a folder that is there.
func Write(dir string, root *cobra.Command, o Options) error {
	for _, p := range Pages(root, o) {
		if err := os.WriteFile(filepath.Join(dir, p.Name), p.Text, 0o644); err != nil { //nolint:gosec // a manual is for everyone
			return fmt.Errorf("write a manual page: %w", err)
		}
	}
	return nil
}

func shown(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() || cmd.IsAdditionalHelpTopicCommand()
}

func section(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() {
		return topics
	}
	return commands
}

// title is the path of a command as a page is named after it.
func title(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is the page of one command.
func page(cmd *cobra.Command, o Options) []byte {
	cmd.InitDefaultHelpFlag()
	var b roff
	fmt.Fprintf(&b, ".TH %s %s %s %s %s\n", quoted(strings.ToUpper(title(cmd))), section(cmd),
		quoted(o.Date.UTC().Format(time.DateOnly)), quoted("Coppice "+o.Version), quoted("Coppice"))
	b.heading("NAME")
	b.line(title(cmd) + ` \- ` + escape(cmd.Short))
	if section(cmd) == commands {
		b.heading("SYNOPSIS")
		b.line(`\fB` + escape(cmd.UseLine()) + `\fP`)
	}
	b.heading("DESCRIPTION")
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.text(about)
	b.below(cmd)
	b.flags("OPTIONS", cmd.NonInheritedFlags())
	b.flags("OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.heading("EXAMPLES")
		b.laidOut(cmd.Example)
	}
	b.seeAlso(cmd)
	return b.Bytes()
}

// roff is a page that is written.
type roff struct{ bytes.Buffer }

func (b *roff) heading(name string) { b.line(".SH " + quoted(name)) }

// line writes a line that is escaped already.
func (b *roff) line(text string) { b.WriteString(text + "\n") }

// text writes paragraphs; those that are laid out with spaces stay as they are.
func (b *roff) text(all string) {
	for paragraph := range strings.SplitSeq(strings.Trim(all, "\n"), "\n\n") {
		if table.MatchString(paragraph) {
			b.laidOut(paragraph)
			continue
		}
		b.line(".PP")
		for l := range strings.Lines(paragraph) {
			b.line(escape(strings.TrimSpace(l)))
		}
	}
}

// table matches a paragraph that is laid out: a line begins with spaces, or has columns.
var table = regexp.MustCompile(`(?m)^ |\S {2,}\S`)

// laidOut writes text that keeps its lines and spaces.
func (b *roff) laidOut(text string) {
	b.line(".PP")
	b.line(".nf")
	b.line(".ft CR")
	for l := range strings.Lines(strings.Trim(text, "\n")) {
		b.line(escape(strings.TrimRight(l, "\n")))
	}
	b.line(".ft")
	b.line(".fi")
}

// below lists the commands below one.
func (b *roff) below(cmd *cobra.Command) {
	headed := false
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if !headed {
			b.heading("COMMANDS")
			headed = true
		}
		b.line(".TP")
		b.line(`\fB` + escape(c.Name()) + `\fP`)
		b.line(escape(c.Short))
	}
}

func (b *roff) flags(name string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	b.heading(name)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.line(".TP")
		head := `\fB` + escape("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			head = `\fB` + escape("-"+f.Shorthand) + `\fP, ` + head
		}
		if kind != "" {
			head += ` \fI` + escape(kind) + `\fP`
		}
		b.line(head)
		b.line(escape(usage))
	})
}

// seeAlso names the command above, those below, and the topics.
func (b *roff) seeAlso(cmd *cobra.Command) {
	var names []string
	add := func(c *cobra.Command) {
		names = append(names, `\fB`+escape(title(c))+`\fP(`+section(c)+`)`)
	}
	if cmd.HasParent() {
		add(cmd.Parent())
	}
	for _, c := range cmd.Commands() {
		if shown(c) {
			add(c)
		}
	}
	if len(names) > 0 {
		b.heading("SEE ALSO")
		b.line(strings.Join(names, ", "))
	}
}

var special = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape makes a line of text one that groff shows as it is.
func escape(line string) string {
	line = special.Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}

// quoted is an argument of a request.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"`
}
