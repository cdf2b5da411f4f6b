package pyenv

import (
	_ "embed"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed requirements.txt
var requirements string

// tailLines is how much of pip's output an error carries.
const tailLines = 12

// countRequirements counts the entries of a requirements file whose packages
// start at the left margin and whose hashes are indented.
func countRequirements(text string) int {
	n := 0
	for l := range strings.Lines(text) {
		if strings.Contains(l, "==") && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "#") {
			n++
		}
	}
	return n
}

// pipCounter follows what pip prints.
type pipCounter struct{ stage Stage }

// line takes a line of pip's output and returns the stage after it, and whether
// that is news.
func (c *pipCounter) line(l string) (Stage, bool) {
	l = strings.TrimSpace(l)
	verb, rest, _ := strings.Cut(l, " ")
	switch {
	case verb == "Ignoring" && strings.Contains(l, ": markers "):
		c.stage.Total--
		return c.stage, false // pip ignores dozens at once
	case verb == "Collecting":
		c.count(firstWord(rest))
	case verb == "Processing": // a file, from a folder given by --find-links
		c.count(path.Base(filepath.ToSlash(firstWord(rest))))
	case strings.HasPrefix(l, "Requirement already satisfied: "):
		c.count(firstWord(strings.TrimPrefix(l, "Requirement already satisfied: ")))
	case strings.HasPrefix(l, "Installing collected packages: "):
		n := strings.Count(l, ",") + 1
		c.stage = Stage{Name: StageInstalling, Detail: fmt.Sprintf("%d packages", n)}
	default:
		return c.stage, false
	}
	return c.stage, true
}

func (c *pipCounter) count(name string) {
	c.stage.Done++
	c.stage.Total = max(c.stage.Total, c.stage.Done)
	c.stage.Detail = name
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(s, " ")
	return w
}

// userInfo matches the name and password of a URL. pip hides them in most of
// its lines; in all of ours they are hidden.
var userInfo = regexp.MustCompile(`://[^/@\s'"]+@`)

func withoutUserInfo(lines []string) []string {
	for i, l := range lines {
		lines[i] = userInfo.ReplaceAllString(l, "://")
	}
	return lines
}

// SetupError says why an environment could not be built.
type SetupError struct {
	Stage StageName
	// Problem and Next are sentence parts: what is wrong, and what to do.
	Problem, Next string
	// Tail is the end of what the failing command printed.
	Tail []string
	// Err is how it ended.
	Err error
}

// Error returns the problem, the next step, and the command's own last word.
func (e *SetupError) Error() string {
	text := e.Problem + "; " + e.Next
	for _, l := range slices.Backward(e.Tail) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "ERROR:") || strings.HasPrefix(l, "Error:") {
			return text + " (its last word: " + l + ")"
		}
	}
	if n := len(e.Tail); n > 0 {
		text += " (its last word: " + strings.TrimSpace(e.Tail[n-1]) + ")"
	}
	return text
}

// Unwrap returns how the failing command ended.
func (e *SetupError) Unwrap() error { return e.Err }

// causes maps what venv and pip print to what it means. The first match wins.
var causes = []struct {
	signs         []string
	problem, next string
}{
	{
		signs:   []string{"ensurepip is not", "No module named ensurepip", "No module named venv", "No module named 'ensurepip'"},
		problem: "this Python cannot make virtual environments with pip",
		next:    "install its venv package (on Debian and Ubuntu: apt install python3-venv), or name another interpreter with --python",
	},
	{
		signs:   []string{"No space left on device", "Disk quota exceeded"},
		problem: "the disk is full",
		next:    "free some space and run coppice setup again",
	},
	{
		signs:   []string{"DO NOT MATCH THE HASHES"},
		problem: "the package index gave a file that is not the one that was pinned",
		next:    "check which index pip uses (pip config list), and do not install from it by other means",
	},
	{
		signs: []string{
			"NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "Max retries exceeded", "Connection refused",
			"Temporary failure in name resolution", "ProxyError", "SSLError", "Read timed out", "ConnectionResetError",
			"Could not find a version that satisfies", "No matching distribution found",
		},
		problem: "the packages are not available: no package index was reached, or it has none of them for this system",
		next:    "check the network and pip's index and proxy settings (pip config list), and run coppice setup again",
	},
	{
		signs:   []string{"No module named pip"},
		problem: "the environment has no pip",
		next:    "remove it and run coppice setup again",
	},
}

// explain turns the end of venv or pip into an error for people.
func explain(stage StageName, base Runtime, err error, tail []string) error {
	tail = withoutUserInfo(tail)
	what := "install the Python packages"
	if stage == StageCreating {
		what = fmt.Sprintf("make a virtual environment with Python %s at %s", base.Version, base.Path)
	}
	e := &SetupError{
		Stage: stage, Tail: tail, Err: err,
		Problem: fmt.Sprintf("%s: the command %v", what, err), Next: "run coppice setup again",
	}
	printed := strings.Join(tail, "\n")
	for _, c := range causes {
		for _, sign := range c.signs {
			if strings.Contains(printed, sign) {
				e.Problem, e.Next = what+": "+c.problem, c.next
				return e
			}
		}
	}
	return e
}
