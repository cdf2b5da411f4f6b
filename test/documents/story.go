package documents

import (
	"fmt"
	"slices"
	"strings"
)

// held are the languages whose blocks the tests of the root package hold, all of them.
var held = []string{"go", "json"}

// Step is a command of a story, or a program in another language.
type Step struct {
	// Block is where it stands.
	Block Block
	// Language is sh, python or ts.
	Language string
	// Shown is what the document has, and Run what is run: a command, or a program. It is
	// empty for what is not run.
	Shown, Run string
	// Not is why it is not run as it stands.
	Not string
	// Want must be in what it prints.
	Want string
	// Fails is that it has to end with an error, Any that it may.
	Fails, Any bool
}

// Story is what a document has a reader do.
type Story struct {
	Doc   string
	Steps []Step
}

// Check says what is wrong with the table: blocks without an entry, entries without a
// block, reasons that are missing. The blocks are those of [Read].
func Check(blocks []Block) []string {
	var wrong []string
	used := map[string]int{}
	for _, b := range blocks {
		if slices.Contains(held, b.Language) {
			continue
		}
		n := used[b.Doc]
		used[b.Doc]++
		if n >= len(table[b.Doc]) || !strings.HasPrefix(b.First(), table[b.Doc][n].first) {
			wrong = append(wrong, fmt.Sprintf("%s: the block that begins with %q has no entry at its place in the table: say how it is run, or why it cannot be", b, b.First()))
			continue
		}
		wrong = append(wrong, table[b.Doc][n].wrong(b)...)
	}
	for doc, entries := range table {
		for _, e := range entries[min(used[doc], len(entries)):] {
			wrong = append(wrong, fmt.Sprintf("%s: there is no block for the entry %q", doc, e.first))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// wrong says what is wrong with an entry for its block.
func (e entry) wrong(b Block) []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s: ", b)+fmt.Sprintf(format, args...))
	}
	switch {
	case e.first == "":
		say("an entry names how its block begins")
	case e.not != "" && (e.before != "" || e.prelude != "" || e.want != "" || len(e.lines) > 0):
		say("a block that is not run is not more than a reason")
	case e.not == "" && !slices.Contains([]string{"sh", "python", "ts"}, b.Language):
		say("a block in %q cannot be run: say what it is", b.Language)
	case b.Language != "sh" && len(e.lines) > 0, b.Language == "sh" && (e.prelude != "" || e.want != ""):
		say("lines are those of shell, a prelude and what all of it prints those of programs")
	}
	for _, l := range e.lines {
		if found := matching(b, l.first); found != 1 {
			say("%d commands begin with %q", found, l.first)
		}
		if l.instead != "" && l.not == "" {
			say("%q is replaced without a reason", l.first)
		}
		if l.not != "" && l.instead == "" && (l.want != "" || l.fails || l.any) {
			say("%q is not run, so that it cannot end in a way", l.first)
		}
	}
	return wrong
}

func matching(b Block, first string) int {
	n := 0
	for _, c := range commands(b.Text) {
		if strings.HasPrefix(c, first) {
			n++
		}
	}
	return n
}

// Stories are what there is to run, by document in the order of the blocks, with what is
// not run among it. Those of a table that [Check] finds wrong are not whole.
func Stories(blocks []Block) []Story {
	var all []Story
	used := map[string]int{}
	for _, b := range blocks {
		n := used[b.Doc]
		if slices.Contains(held, b.Language) || n >= len(table[b.Doc]) {
			continue
		}
		used[b.Doc]++
		if len(all) == 0 || all[len(all)-1].Doc != b.Doc {
			all = append(all, Story{Doc: b.Doc})
		}
		last := &all[len(all)-1]
		last.Steps = append(last.Steps, table[b.Doc][n].steps(b)...)
	}
	return all
}

// steps are what is run of a block.
func (e entry) steps(b Block) []Step {
	if e.not != "" {
		return []Step{{Block: b, Language: b.Language, Shown: b.First(), Not: e.not}}
	}
	var steps []Step
	if e.before != "" {
		steps = append(steps, Step{Block: b, Language: "sh", Shown: e.before, Run: e.before, Any: true})
	}
	if b.Language != "sh" {
		return append(steps, Step{Block: b, Language: b.Language, Shown: b.First() + " …", Run: e.prelude + b.Text, Want: e.want})
	}
	for _, c := range commands(b.Text) {
		s := Step{Block: b, Language: "sh", Shown: c, Run: c}
		for _, l := range e.lines {
			if !strings.HasPrefix(c, l.first) {
				continue
			}
			s.Not, s.Want, s.Fails, s.Any = l.not, l.want, l.fails, l.any
			if l.not != "" {
				s.Run = l.instead
			}
		}
		steps = append(steps, s)
	}
	return steps
}
