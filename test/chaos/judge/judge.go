package judge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Line is one line of calls.jsonl: a call, or its result.
type Line struct {
	// What is "call" or "result"; "still" is no one's.
	What    string
	Session string
	Call    string
	// At is when it was made or answered, in milliseconds of one clock.
	At int64
	// Cells and Limit belong to a call: how many cells it has, and the time of its
	// context, in milliseconds.
	Cells int
	Limit int64
	// Outcome, State and Printed belong to a result: Printed is the last line that each
	// cell printed.
	Outcome, State string
	Printed        []string
	// Incomplete says that the result says that output is missing.
	Incomplete bool
	Reason     string
}

// Bounds are those of the run, in milliseconds.
type Bounds struct {
	// Ended is when the host was killed: calls that had time left then have no result.
	Ended int64
	// Grace is what an interrupted cell has, Margin what is allowed above it.
	Grace, Margin int64
	// Still says how long the host stood still between two times, or wanted a processor
	// and had none.
	Still func(from, to int64) int64
}

// Report says what was found.
type Report struct {
	Calls, Results, Ran int
	Outcomes            map[string]int
	States              map[string]int
	// Untrue are the violations, Late those calls that came beyond their limit, and
	// Latest by how much the worst did.
	Untrue, Late []string
	Latest       time.Duration
}

// step is a line of a session's cells.
type step struct {
	end         bool
	call        string
	cell, value int
	incarnation string
}

// call is one call, with its result.
type call struct {
	asked  Line
	result *Line
	steps  []step
}

// Judge reads the files in a folder. The error says that one cannot be read.
func Judge(dir string, b Bounds) (Report, error) {
	r := Report{Outcomes: map[string]int{}, States: map[string]int{}}
	sessions, order, err := r.read(filepath.Join(dir, "calls.jsonl"))
	if err != nil {
		return r, err
	}
	for _, name := range order {
		steps, err := r.steps(filepath.Join(dir, name+".cells"), name)
		if err != nil {
			return r, err
		}
		r.session(name, sessions[name], steps, b)
	}
	return r, nil
}

func (r *Report) untrue(format string, args ...any) {
	r.Untrue = append(r.Untrue, fmt.Sprintf(format, args...))
}

func (r *Report) read(path string) (map[string][]*call, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	sessions, byID := map[string][]*call{}, map[string]*call{}
	var order []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			continue // the host was killed while it wrote the last one
		}
		switch known := byID[l.Call]; {
		case l.What == "still": // it is about the host
		case l.What == "call" && known != nil:
			r.untrue("%s: asked twice", l.Call)
		case l.What == "call":
			r.Calls++
			c := &call{asked: l}
			byID[l.Call] = c
			if sessions[l.Session] == nil {
				order = append(order, l.Session)
			}
			sessions[l.Session] = append(sessions[l.Session], c)
		case known == nil:
			r.untrue("%s: a result without a call", l.Call)
		case known.result != nil:
			r.untrue("%s: a second result", l.Call)
		default:
			r.Results++
			r.Outcomes[l.Outcome]++
			r.States[l.State]++
			known.result = &l
		}
	}
	return sessions, order, lines.Err()
}

func (r *Report) steps(path, session string) ([]step, error) {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil // none has run
	}
	if err != nil {
		return nil, err
	}
	var all []step
	for l := range strings.SplitSeq(strings.TrimSuffix(string(data), "\n"), "\n") {
		w := strings.Fields(l)
		if len(w) != 5 || (w[0] != "B" && w[0] != "E") {
			r.untrue("%s: the line %q of a cell", session, l)
			continue
		}
		cell, err1 := strconv.Atoi(w[2])
		value, err2 := strconv.Atoi(w[4])
		if err1 != nil || err2 != nil {
			r.untrue("%s: the line %q of a cell", session, l)
			continue
		}
		all = append(all, step{end: w[0] == "E", call: w[1], cell: cell, incarnation: w[3], value: value})
	}
	return all, nil
}

// session judges the calls of one session, which were made one after the other.
func (r *Report) session(name string, calls []*call, steps []step, b Bounds) {
	at := 0
	known := map[string]int{}
	for i, c := range calls {
		known[c.asked.Call] = i
	}
	for n, s := range steps {
		i, ok := known[s.call]
		switch {
		case !ok:
			r.untrue("%s: a cell of %s ran, which was never asked for", name, s.call)
			continue
		case i < at:
			r.untrue("%s: a cell of %s ran after one of a later call (line %d)", name, s.call, n+1)
		}
		at = max(at, i)
		calls[i].steps = append(calls[i].steps, s)
	}
	h := history{seen: map[string]bool{}}
	for _, c := range calls {
		r.onTime(c, b)
		r.call(c, &h)
	}
}

// onTime judges when the result came.
func (r *Report) onTime(c *call, b Bounds) {
	end := b.Ended
	if c.result != nil {
		end = c.result.At
	}
	still := int64(0)
	if b.Still != nil {
		still = b.Still(c.asked.At, end)
	}
	over := end - c.asked.At - c.asked.Limit - b.Grace - b.Margin - still
	if over <= 0 {
		return
	}
	text := fmt.Sprintf("%s: %d ms beyond its limit of %d ms and all that is allowed: ", c.asked.Call, over, c.asked.Limit)
	if c.result == nil {
		const never = 30_000 // later than anything is allowed to be
		if over > never {
			r.untrue("%sno result", text)
		} else {
			r.Late = append(r.Late, text+"no result yet")
		}
		return
	}
	r.Latest = max(r.Latest, time.Duration(over)*time.Millisecond)
	r.Late = append(r.Late, text+c.result.Outcome+" "+c.result.State+" "+c.result.Reason)
}
