// Command coverage reads profiles of go test and says how much of each package was run, by any
// test and by any program that a test has started. A product package of which less than 70 %
// was run has its reason beside it, or the command fails.
//
//	go run ./test/coverage -out packages.txt tests.out programs.out -- ./supervisor/...
//
// "make coverage" makes the profiles. What stands behind -- are the packages to tell of; nothing
// there means all.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	module = "github.com/coppice-run/coppice"
	// least is how much of a product package must be run, in percent.
	least = 70
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// errLow says that too little of a package was run.
var errLow = errors.New("packages need tests, or a reason in test/coverage/reasons.go")

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	keep := flags.String("out", "", "the file that the table is written to as well")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	profiles, patterns := flags.Args(), []string{}
	if i := slices.Index(profiles, "--"); i >= 0 {
		profiles, patterns = profiles[:i], profiles[i+1:]
	}
	blocks := map[string]block{}
	for _, name := range profiles {
		if err := read(name, blocks); err != nil {
			return err
		}
	}
	only, err := packages(patterns)
	if err != nil {
		return err
	}
	table, low := tell(count(blocks), only)
	if _, err := io.WriteString(out, table); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if *keep != "" {
		if err := os.WriteFile(*keep, []byte(table), 0o600); err != nil {
			return fmt.Errorf("keep the table: %w", err)
		}
	}
	if low > 0 {
		return fmt.Errorf("%d %w", low, errLow)
	}
	return nil
}

// block is a piece of code without a branch: how many statements it has, and whether it ran.
type block struct {
	statements int
	ran        bool
}

// read adds the blocks of a profile. One that several programs have ran when it did in any.
func read(name string, blocks map[string]block) error {
	file, err := os.Open(name) //nolint:gosec // a profile of ours
	if err != nil {
		return fmt.Errorf("read a profile: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		if strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		fields := strings.Fields(lines.Text()) // place, statements, how often
		if len(fields) != 3 {
			return fmt.Errorf("%s:%d: %q is no line of a profile", name, n, lines.Text())
		}
		statements, err := strconv.Atoi(fields[1])
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		b := blocks[fields[0]]
		b.statements, b.ran = statements, b.ran || fields[2] != "0"
		blocks[fields[0]] = b
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// share is how many of a package's statements there are, and how many ran.
type share struct{ all, ran int }

func (s share) percent() float64 { return 100 * float64(s.ran) / float64(s.all) }

// count adds the blocks up by package, named as from the top of the repository.
func count(blocks map[string]block) map[string]share {
	shares := map[string]share{}
	for place, b := range blocks {
		file, _, _ := strings.Cut(place, ":")
		dir := strings.TrimPrefix(strings.TrimPrefix(path.Dir(file), module), "/")
		if dir == "" {
			dir = "."
		}
		if !product(dir) {
			continue
		}
		s := shares[dir]
		s.all += b.statements
		if b.ran {
			s.ran += b.statements
		}
		shares[dir] = s
	}
	return shares
}

// product says whether users run the package: what tests and measures it is none, nor what a
// program has made of something else.
func product(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	return top != "test" && top != "bench" && top != "examples" && top != "tools" && !strings.HasSuffix(dir, "test") && !strings.HasPrefix(dir, "cmd/internal/e2b/wire")
}

// packages are those that match the patterns of go list; nil means all.
func packages(patterns []string) (map[string]bool, error) {
	if len(patterns) == 0 {
		return nil, nil //nolint:nilnil // all of them
	}
	said, err := exec.CommandContext(context.Background(), "go", append([]string{"list", "--"}, patterns...)...).Output() //nolint:gosec // patterns of packages
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	only := map[string]bool{}
	for p := range strings.FieldsSeq(string(said)) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p, module), "/")
		if dir == "" {
			dir = "."
		}
		only[dir] = true
	}
	return only, nil
}

// tell is the table, and in how many packages too little ran without a reason.
func tell(shares map[string]share, only map[string]bool) (table string, low int) {
	var names []string
	for name := range shares {
		if only == nil || only[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var total share
	var b strings.Builder
	for _, name := range names {
		s := shares[name]
		total.all, total.ran = total.all+s.all, total.ran+s.ran
		note := ""
		if s.percent() < least {
			if note = reasons[name]; note == "" {
				note = fmt.Sprintf("less than %d %%, and no reason", least)
				low++
			}
		}
		fmt.Fprintf(&b, "%5.1f %%  %5d  %s\n", s.percent(), s.all, strings.TrimRight(name+"  "+note, " "))
	}
	if total.all > 0 {
		fmt.Fprintf(&b, "%5.1f %%  %5d  all\n", total.percent(), total.all)
	}
	return b.String(), low
}
