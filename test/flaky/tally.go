package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// event is what go test -json says, see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

// name is a test, or a package as a whole.
type name struct{ pkg, test string }

// String is "package TestX/part", without the test of a package.
func (n name) String() string { return strings.TrimSpace(n.pkg + " " + n.test) }

// tally is what failed, over several runs. It is used by one goroutine at a time.
type tally struct {
	dir      string
	failures int
	failed   map[name]int
	kept     map[name][]string // the files with what it said, and what had not ended then
}

func newTally(dir string) *tally {
	return &tally{dir: dir, failed: map[name]int{}, kept: map[name][]string{}}
}

// read takes what one run says, up to its end.
func (t *tally) read(run int, from io.Reader) error {
	said := map[name]*strings.Builder{}
	failed, open := map[name]bool{}, map[name]bool{}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)} // of the compiler
			}
			n := name{e.Package, e.Test}
			if said[n] == nil {
				said[n] = &strings.Builder{}
			}
			said[n].WriteString(e.Output)
			switch e.Action {
			case "run", "cont":
				open[n] = true
			case "pause":
				delete(open, n)
			case "fail":
				failed[n] = true
				delete(open, n)
			case "pass", "skip":
				delete(said, n)
				delete(open, n)
			}
		}
		if err != nil {
			break // the end; of a pipe in memory there is no other
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(failed), byName) {
		if blamed(n, failed) {
			continue
		}
		t.failures++
		t.failed[n]++
		path, err := t.keep(run, n, said)
		if err != nil {
			return err
		}
		t.kept[n] = append(t.kept[n], path+unended(n, open))
	}
	return nil
}

// unended names the tests that a package had not ended when it failed as a whole: it
// crashed, was killed, or took too long, and one of them knows why.
func unended(n name, open map[name]bool) string {
	var names []string
	for other := range open {
		if n.test == "" && other.pkg == n.pkg && !blamed(other, open) {
			names = append(names, other.test)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " (not ended: " + strings.Join(names, ", ") + ")"
}

func byName(a, b name) int { return strings.Compare(a.String(), b.String()) }

// blamed says that a failure is only that of one of its parts, which is named itself: a
// test fails with its sub-tests, and a package with its tests.
func blamed(n name, failed map[name]bool) bool {
	for other := range failed {
		if other.pkg == n.pkg && other != n && (n.test == "" || strings.HasPrefix(other.test, n.test+"/")) {
			return true
		}
	}
	return false
}

// notOfFiles are the characters that a name of a file is better without.
var notOfFiles = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// keep writes what a test said, with what the tests above it and its package said.
func (t *tally) keep(run int, n name, said map[name]*strings.Builder) (string, error) {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for what failures say: %w", err)
	}
	var text strings.Builder
	for _, other := range slices.SortedFunc(maps.Keys(said), byName) {
		if other.pkg == n.pkg && (other == n || strings.HasPrefix(n.test, other.test+"/") || strings.HasPrefix(other.test, n.test+"/") || other.test == "") {
			fmt.Fprintf(&text, "=== %v\n%s", other, said[other])
		}
	}
	short := n.pkg[strings.LastIndexByte(n.pkg, '/')+1:]
	path := filepath.Join(t.dir, notOfFiles.ReplaceAllString(fmt.Sprintf("%s-%s-%d", short, n.test, run), "_")+".txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return "", fmt.Errorf("keep what a failure said: %w", err)
	}
	return path, nil
}

// summary tells of each test that failed how often it did, and where it says why.
func (t *tally) summary(out io.Writer) {
	if t.failures == 0 {
		_, _ = fmt.Fprintln(out, "no failures")
		return
	}
	for _, n := range slices.SortedFunc(maps.Keys(t.failed), func(a, b name) int {
		if t.failed[a] != t.failed[b] {
			return t.failed[b] - t.failed[a]
		}
		return byName(a, b)
	}) {
		_, _ = fmt.Fprintf(out, "%4d  %v\n", t.failed[n], n)
		for _, path := range t.kept[n] {
			_, _ = fmt.Fprintln(out, "      ", path)
		}
	}
}
