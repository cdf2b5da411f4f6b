//go:build unix

package forkserver

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// saidMost is how many lines of what a server printed are looked at.
const saidMost = 40

// tracebackFile is the line of a traceback that names a place.
var tracebackFile = regexp.MustCompile(`^  File "([^"<][^"]*)", line (\d+)`)

// said is the last line that a server printed before it ended, with the place of the
// user's that it is about: a file that Python found through PYTHONPATH may stand before a
// module of the standard library.
func said(lines, env []string) string {
	text := fmt.Sprintf("%q", lines[len(lines)-1])
	paths := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PYTHONPATH="); ok {
			paths = v
		}
	}
	for _, line := range slices.Backward(lines) {
		m := tracebackFile.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		text += fmt.Sprintf(" (%s, line %s)", m[1], m[2])
		for _, dir := range filepath.SplitList(paths) {
			if rest, err := filepath.Rel(dir, m[1]); dir != "" && err == nil && filepath.IsLocal(rest) {
				return text + "; Python found this file through PYTHONPATH, where it may stand before a module of the standard library: rename it, or take " + dir + " out of PYTHONPATH"
			}
		}
		return text
	}
	return text
}
