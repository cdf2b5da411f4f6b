package jupyterapi

import (
	"regexp"
	"slices"
	"strings"
)

// What a kernel remembers of its code: how many pieces, and how many bytes of them.
const maxHistory, maxHistoryBytes = 10_000, 8 << 20

// entry is code that has got a number.
type entry struct {
	process, line int // of the kernel's processes the first is 1
	input         string
	output        *string // the text of its result, nil where it had none
}

func (e entry) size() int {
	n := len(e.input)
	if e.output != nil {
		n += len(*e.output)
	}
	return n
}

// history is the code of a kernel, the newest last, also of the processes that it had
// before. The zero value is that of a kernel that was never restarted. It is guarded by the
// mutex of its kernel.
type history struct {
	before  int // how many processes the kernel had before this one
	entries []entry
	bytes   int
}

// keep keeps a piece of code, and drops the oldest ones that are too many.
func (h *history) keep(e entry) {
	h.entries, h.bytes = append(h.entries, e), h.bytes+e.size()
	drop := 0
	for len(h.entries)-drop > maxHistory || h.bytes > maxHistoryBytes {
		h.bytes -= h.entries[drop].size()
		drop++
	}
	if drop > 0 {
		h.entries = slices.Delete(h.entries, 0, drop)
	}
}

// recollection is a history_request.
type recollection struct {
	Output  bool   `json:"output"`
	Access  string `json:"hist_access_type"`
	Session int    `json:"session"` // 0: this process; negative: so many before it
	Start   int    `json:"start"`
	Stop    *int   `json:"stop"`
	N       *int   `json:"n"`
	Pattern string `json:"pattern"` // as a shell matches names; "" matches everything
	Unique  bool   `json:"unique"`
}

// matching returns what a request asks for, the oldest first.
func (h *history) matching(o recollection) []entry {
	switch o.Access {
	case "range":
		return h.span(o)
	case "search":
		return h.search(o)
	default: // "tail"
		n := 10
		if o.N != nil {
			n = *o.N
		}
		return last(h.entries, n)
	}
}

func last(list []entry, n int) []entry { return list[len(list)-min(max(n, 0), len(list)):] }

// span returns the lines of one process from start on, before stop.
func (h *history) span(o recollection) []entry {
	process := o.Session
	if process <= 0 {
		process += h.before + 1
	}
	most := 0
	for _, e := range h.entries {
		if e.process == process {
			most = e.line
		}
	}
	start, stop := o.Start, most+1
	if start < 0 { // counted from the end
		start += most + 1
	}
	if o.Stop != nil && *o.Stop != 0 {
		if stop = *o.Stop; stop < 0 {
			stop += most + 1
		}
	}
	var found []entry
	for _, e := range h.entries {
		if e.process == process && e.line >= start && e.line < stop {
			found = append(found, e)
		}
	}
	return found
}

// search returns the newest code that matches a pattern.
func (h *history) search(o recollection) []entry {
	pattern := globbed(o.Pattern)
	var found []entry
	seen := map[string]bool{}
	for _, e := range slices.Backward(h.entries) {
		if o.N != nil && len(found) >= *o.N {
			break
		}
		if pattern.MatchString(e.input) && !(o.Unique && seen[e.input]) {
			seen[e.input] = true
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	return found
}

// globbed is a pattern of *, ? and [sets], which matches all of a text.
func globbed(pattern string) *regexp.Regexp {
	if pattern == "" {
		pattern = "*"
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); {
		switch end := strings.IndexByte(pattern[i:], ']'); {
		case pattern[i] == '*':
			b.WriteString(".*")
		case pattern[i] == '?':
			b.WriteString(".")
		case pattern[i] == '[' && end > 1:
			set := pattern[i+1 : i+end]
			if _, err := regexp.Compile("[" + set + "]"); err != nil {
				set = regexp.QuoteMeta(set)
			}
			b.WriteString("[" + set + "]")
			i += end
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
		i++
	}
	b.WriteString(`\z`)
	r, err := regexp.Compile(b.String())
	if err != nil { // it holds bytes that are no text
		return regexp.MustCompile(`\A` + regexp.QuoteMeta(strings.ToValidUTF8(pattern, "�")) + `\z`)
	}
	return r
}
