//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/coppice-run/coppice/test/documents"
)

// report tells of each step how it ended, and what was said by those that did not end as
// their document says.
func report(out io.Writer, story documents.Story, ends []ending, noTypeScript bool) (sum count, err error) {
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format, args...)
		}
	}
	for i, s := range story.Steps {
		shown, _, _ := strings.Cut(s.Shown, "\n")
		reason := s.Not
		if s.Run != "" && s.Language == "ts" && noTypeScript {
			reason = "the client for TypeScript was not built"
		} else if s.Run != "" {
			reason = ""
		}
		if reason != "" {
			sum.not++
			say("not run        %s  %s\n               %s\n", s.Block, shown, reason)
			continue
		}
		e := ends[i]
		problem := e.problem(s, ends[i:])
		if problem != "" {
			sum.wrong++
			say("WRONG  %5.1f s  %s  %s\n               %s; it said:\n%s\n", e.took.Seconds(), s.Block, shown, problem, strings.TrimRight(e.said, "\n"))
			continue
		}
		sum.good++
		say("ok     %5.1f s  %s  %s\n", e.took.Seconds(), s.Block, shown)
		if s.Not != "" {
			instead, _, _ := strings.Cut(s.Run, "\n")
			say("               as %s: %s\n", instead, s.Not)
		}
	}
	return sum, err
}

// problem is what is wrong with how a step has ended, if anything is. What a server
// says may come after it took its first request: it is looked for in all that came later.
func (e ending) problem(s documents.Step, later []ending) string {
	said := e.said
	if serves(s) {
		for _, l := range later[1:] {
			said += l.said
		}
	}
	switch {
	case !e.came:
		return "the shell did not come to its end"
	case s.Fails && e.status == 0:
		return "it ended well, which it should not"
	case !s.Fails && !s.Any && e.status != 0:
		return fmt.Sprintf("it ended with %d", e.status)
	case !contains(said, s.Want):
		return fmt.Sprintf("it did not print %q", s.Want)
	}
	return ""
}

// contains looks for lines without the space around them.
func contains(said, want string) bool {
	var lines []string
	for line := range strings.Lines(said) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Contains(strings.Join(lines, "\n")+"\n", want)
}
