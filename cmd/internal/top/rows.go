package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/client"
)

// row is a session as the table shows it.
type row struct {
	client.Session
	mark client.Mark
	cpu  float64
}

// ranks orders the levels: who needs a person stands first.
var ranks = map[client.Level]int{client.LevelBad: 0, client.LevelAsks: 1, client.LevelShaky: 2, "": 3}

// orders are what rows can be sorted by, with the key that asks for it.
var orders = map[string]struct {
	name string
	less func(a, b row) int
}{
	"H": {"health", func(a, b row) int { return cmp.Compare(ranks[a.mark.Level], ranks[b.mark.Level]) }},
	"N": {"name", func(a, b row) int { return strings.Compare(a.Session.Session, b.Session.Session) }},
	"S": {"state", func(a, b row) int { return strings.Compare(string(a.State), string(b.State)) }},
	"M": {"memory", func(a, b row) int { return cmp.Compare(b.RSS, a.RSS) }},
	"C": {"cpu", func(a, b row) int { return cmp.Compare(b.cpu, a.cpu) }},
	"W": {"queue", func(a, b row) int { return cmp.Compare(b.Queue, a.Queue) }},
	"D": {"done", func(a, b row) int { return cmp.Compare(b.Done, a.Done) }},
	"R": {"restarts", func(a, b row) int { return cmp.Compare(b.Restarts, a.Restarts) }},
	"O": {"owner", func(a, b row) int { return strings.Compare(a.Owner, b.Owner) }},
	"E": {"node", func(a, b row) int { return strings.Compare(a.Node, b.Node) }},
	"K": {"workspace", func(a, b row) int { return strings.Compare(a.Workspace, b.Workspace) }},
	"A": {"age", func(a, b row) int { return a.Since.Compare(b.Since) }},
}

// sortRows orders rows by what a key of orders asks for; equal ones by their names.
func sortRows(rows []row, by string, turned bool) {
	o, ok := orders[by]
	if !ok {
		o = orders["H"]
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		first := o.less(a, b)
		if turned {
			first = -first
		}
		return cmp.Or(first, strings.Compare(a.Session.Session, b.Session.Session), strings.Compare(a.Cwd, b.Cwd))
	})
}

// matches says whether a row is looked for: all words of the filter hold, of which each
// is a part of its texts, key:value or key:>number, or, with a minus before it, none of
// these. The page of the live view has the same words.
func (r row) matches(filter string, now time.Time) bool {
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		word, not := strings.CutPrefix(word, "-")
		if word != "" && r.has(word, now) == not {
			return false
		}
	}
	return true
}

func (r row) has(word string, now time.Time) bool {
	key, value, ok := strings.Cut(word, ":")
	if ok {
		if text, known := r.text(key); known {
			if key == "state" || key == "health" || key == "pinned" {
				return text == value
			}
			return strings.Contains(text, value)
		}
		if have, known := r.number(key, now); known {
			return compare(have, value, key == "age")
		}
	}
	exit := ""
	if r.LastExit != nil {
		exit = string(r.LastExit.Kind)
	}
	all := strings.Join([]string{r.Session.Session, r.Cwd, string(r.State), r.Owner, string(r.mark.Level), r.mark.Parent, r.Workspace, r.Node, exit}, " ")
	return strings.Contains(strings.ToLower(all), word)
}

func (r row) text(key string) (text string, known bool) {
	switch key {
	case "state":
		text = string(r.State)
	case "name":
		text = r.Session.Session
	case "dir", "cwd":
		text = r.Cwd
	case "owner":
		text = r.Owner
	case "node":
		text = r.Node
	case "workspace", "ws":
		text = r.Workspace
	case "health":
		text = cmp.Or(string(r.mark.Level), "well")
	case "pinned":
		text = "no"
		if r.Pinned {
			text = "yes"
		}
	case "exit":
		if r.LastExit != nil {
			text = string(r.LastExit.Kind)
		}
	default:
		return "", false
	}
	return strings.ToLower(text), true
}

func (r row) number(key string, now time.Time) (n float64, known bool) {
	switch key {
	case "rss", "mem", "memory":
		return float64(r.RSS), true
	case "cpu":
		return r.cpu, true
	case "queue":
		return float64(r.Queue), true
	case "done":
		return float64(r.Done), true
	case "restarts":
		return float64(r.Restarts), true
	case "pid":
		return float64(r.PID), true
	case "age":
		return now.Sub(r.Since).Seconds(), true
	}
	return 0, false
}

// compare holds a number against >100m, <=5 or 7. A value that is no number matches
// nothing.
func compare(have float64, value string, isTime bool) bool {
	op := value[:len(value)-len(strings.TrimLeft(value, "<>="))]
	want, ok := numberOf(value[len(op):], isTime)
	if !ok {
		return false
	}
	switch op {
	case ">":
		return have > want
	case ">=":
		return have >= want
	case "<":
		return have < want
	case "<=":
		return have <= want
	default:
		return have == want
	}
}

// numberOf reads 100m, 1.5gib, 30%; of a time 90s, 10m, 2h, 1d.
func numberOf(text string, isTime bool) (float64, bool) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789."))
	n, err := strconv.ParseFloat(text[:digits], 64)
	if err != nil {
		return 0, false
	}
	unit := text[digits:]
	if isTime {
		f, ok := map[string]float64{"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[unit]
		return n * f, ok
	}
	f, ok := map[string]float64{"": 1, "%": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i")]
	return n * f, ok
}
