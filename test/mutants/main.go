// Command mutants reads what gremlins reports of a package: which changes of the code no test
// noticed. Each of these has a line in the table of explained ones, with the reason why nobody
// can notice it, or it is a test that is missing.
//
//	go run ./test/mutants -package supervisor/strategy report.json
//
// It exits with 1 when a change lives that is not explained. "make mutants" runs all of it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// errLive says that a change lives which is not explained.
var errLive = errors.New("tests are missing: write one that fails with the change, or say in test/mutants/explained.go why none can")

// report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string     `json:"file_name"`
		Mutations []mutation `json:"mutations"`
	} `json:"files"`
}

type mutation struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	top := flags.String("top", ".", "the repository, as it was when the report was made")
	dir := flags.String("package", "", "the folder that was changed, with slashes")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if flags.NArg() != 1 || *dir == "" {
		return errors.New("name the package and one report")
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the report %s: %w", flags.Arg(0), err)
	}
	count := map[string]int{}
	for _, f := range r.Files {
		name := path.Join(*dir, filepath.ToSlash(f.Name))
		var lines []string
		for _, m := range f.Mutations {
			status := m.Status
			if status == "LIVED" {
				if lines == nil {
					source, err := os.ReadFile(filepath.Join(*top, filepath.FromSlash(name)))
					if err != nil {
						return fmt.Errorf("read what was changed: %w", err)
					}
					lines = strings.Split(string(source), "\n")
				}
				line := ""
				if m.Line >= 1 && m.Line <= len(lines) {
					line = lines[m.Line-1]
				}
				if reason := explain(name, m, line); reason != "" {
					status = "EXPLAINED"
					fmt.Fprintf(out, "%s:%d:%d %s: %s\n", name, m.Line, m.Column, m.Type, reason)
				} else {
					fmt.Fprintf(out, "%s:%d:%d %s lives: %s\n", name, m.Line, m.Column, m.Type, strings.TrimSpace(line))
				}
			}
			count[status]++
		}
	}
	killed := count["KILLED"] + count["TIMED OUT"]
	tried := killed + count["LIVED"] + count["EXPLAINED"]
	if tried == 0 {
		return fmt.Errorf("the report %s has no change that was tried", flags.Arg(0))
	}
	fmt.Fprintf(out, "%s: %d changes tried, %d noticed (%.1f %%), %d explained, %d live; %d in code without a count of its own, such as the conditions of cases\n",
		*dir, tried, killed, 100*float64(killed)/float64(tried), count["EXPLAINED"], count["LIVED"], count["NOT COVERED"])
	if count["LIVED"] > 0 {
		return errLive
	}
	return nil
}

// explain is why nobody can notice a change, "" when nothing says so.
func explain(file string, m mutation, line string) string {
	for _, e := range explained {
		at := strings.Index(line, e.code)
		if e.file == file && e.kind == m.Type && at >= 0 && m.Column > at && m.Column <= at+len(e.code) {
			return e.why
		}
	}
	return ""
}
