package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// Bounds of a page of what happened or was executed.
const (
	maxPage    = 1000
	defPage    = 100
	maxFilter  = 200 // characters
	filterHint = "words that all have to occur, in any case"
)

// words are those of a filter, in lower case.
func words(query url.Values) ([]string, error) {
	text := query.Get("filter")
	if n := utf8.RuneCountInString(text); n > maxFilter || len(query["filter"]) > 1 {
		return nil, badRequest{fmt.Sprintf("filter has more than %d characters, or is there twice", maxFilter), filterHint}
	}
	return strings.Fields(strings.ToLower(text)), nil
}

// has reports whether all words occur in a text.
func has(text string, words []string) bool {
	text = strings.ToLower(text)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// span is a range of time; a zero bound is none.
type span struct{ since, until time.Time }

func (s span) holds(at time.Time) bool {
	return !at.Before(s.since) && (s.until.IsZero() || !at.After(s.until))
}

// between reads a range of time.
func between(r *http.Request) (s span, err error) {
	for name, to := range map[string]*time.Time{"since": &s.since, "until": &s.until} {
		if *to, err = httpserver.Time(r, name); err != nil {
			return s, badRequest{err.Error(), "send a time as in RFC 3339, such as 2026-01-02T15:04:05Z, or leave it out"}
		}
	}
	return s, nil
}

// limit is how long a page may be.
func limit(r *http.Request) (int, error) {
	n, given, err := httpserver.Number(r, "limit", 1)
	switch {
	case err != nil:
		return 0, badRequest{err.Error(), ""}
	case !given:
		return defPage, nil
	case n > maxPage:
		return 0, badRequest{fmt.Sprintf("limit must be at most %d", maxPage), ""}
	default:
		return int(n), nil
	}
}

// textOf is what a filter looks at: every text that a change holds.
func textOf(c client.Change) string {
	var b strings.Builder
	b.WriteString(c.Type)
	if x := c.Execution; x != nil {
		b.WriteString("\n" + strings.Join([]string{x.ID, x.Session, x.Cwd, x.Workspace, x.Owner, x.Title, string(x.State), string(x.Outcome)}, "\n"))
	}
	var tree any
	if len(c.Tree) > 0 && json.Unmarshal(c.Tree, &tree) == nil {
		texts(&b, tree)
	}
	return b.String()
}

func texts(b *strings.Builder, v any) {
	switch v := v.(type) {
	case string:
		b.WriteString("\n" + v)
		if key, ok := messages.ParseSessionKey(v); ok { // as a person writes it
			b.WriteString("\n" + key.Session)
		}
	case []any:
		for _, one := range v {
			texts(b, one)
		}
	case map[string]any:
		for _, one := range slices.Sorted(maps.Keys(v)) {
			texts(b, v[one])
		}
	}
}

// page returns the changes that fit between two numbers: the newest of them, or with
// forward the oldest, and whether there are more. Of those up to the number forgotten only
// the notable ones are there.
func (c *changes) page(after, before uint64, forward bool, most int, fits func(client.Change) bool) (list []client.Change, more bool, newest, forgotten uint64) {
	c.mu.Lock()
	all := make([]client.Change, 0, min(c.last, keptChanges))
	forgotten = c.forgotten()
	for i := range uint64(len(c.notable)) { // those that the newest have pushed out
		one := c.notable[(c.noted-uint64(len(c.notable))+i)%keptNotable]
		if one.Seq > after && one.Seq <= forgotten && one.Seq < before {
			all = append(all, one)
		}
	}
	for n := max(after, forgotten); n < c.last && n+1 < before; n++ {
		all = append(all, c.ring[n%keptChanges])
	}
	newest = c.last
	c.mu.Unlock()
	if !forward {
		slices.Reverse(all)
	}
	list = []client.Change{}
	for _, one := range all {
		if !fits(one) {
			continue
		}
		if len(list) == most {
			more = true
			break
		}
		list = append(list, one)
	}
	if !forward {
		slices.Reverse(list)
	}
	return list, more, newest, forgotten
}

// past answers with a page of what happened.
func (a *API) past(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	var within span
	var most int
	var after, before int64
	var forward, bounded bool
	wanted, err := words(query)
	if err == nil {
		within, err = between(r)
	}
	if err == nil {
		most, err = limit(r)
	}
	if err == nil {
		if after, forward, err = httpserver.Number(r, "after", 0); err != nil {
			err = badRequest{err.Error(), "send the number of an event"}
		}
	}
	if err == nil {
		if before, bounded, err = httpserver.Number(r, "before", 1); err != nil {
			err = badRequest{err.Error(), "send the number of an event"}
		}
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	end := uint64(math.MaxUint64)
	if bounded {
		end = uint64(before) //nolint:gosec // it is at least 1
	}
	var told client.Past
	told.Events, told.More, told.Newest, told.Forgotten = a.changes.page(uint64(after), end, forward, most, func(c client.Change) bool { //nolint:gosec // it is at least 0
		return within.holds(c.At) && (len(wanted) == 0 || has(textOf(c), wanted))
	})
	httpserver.Answer(w, r, http.StatusOK, told)
}

// outcomes are those that an execution may end with.
var outcomes = []messages.Outcome{messages.OutcomeOK, messages.OutcomeError, messages.OutcomeTimeout, messages.OutcomeCancelled, messages.OutcomeLost, messages.OutcomeNotStarted}

// list answers with executions, the newest first: all of a session, those whose code or
// other texts have the words of a filter, a page before one of them.
func (a *API) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wanted, err := words(query)
	var within span
	if err == nil {
		within, err = between(r)
	}
	if outcome := query.Get("outcome"); err == nil && query.Has("outcome") && !slices.Contains(outcomes, messages.Outcome(outcome)) {
		err = badRequest{fmt.Sprintf("there is no outcome %.40q", outcome), "use ok, error, timeout, cancelled, lost or not_started"}
	}
	most, given := maxPage, query.Has("limit")
	if err == nil && given {
		most, err = limit(r)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	a.mu.Lock()
	a.forgetLocked()
	order := slices.Clone(a.order)
	a.mu.Unlock()
	if id := query.Get("before"); id != "" {
		at := slices.IndexFunc(order, func(x *execution) bool { return x.info.ID == id })
		order = order[:max(at, 0)] // what came before one that is forgotten is, too
	}
	list, more := []client.Execution{}, false
	for _, x := range slices.Backward(order) {
		info := x.describe(false)
		if query.Has("session") && info.Session != query.Get("session") || query.Has("cwd") && info.Cwd != query.Get("cwd") || query.Has("workspace") && info.Workspace != query.Get("workspace") || query.Has("kernel") && info.Kernel != query.Get("kernel") {
			continue
		}
		if query.Has("outcome") && string(info.Outcome) != query.Get("outcome") || !within.holds(info.Started) {
			continue
		}
		if len(wanted) > 0 && !has(textOf(client.Change{Execution: &info})+"\n"+x.code, wanted) {
			continue
		}
		if given && len(list) == most {
			more = true
			break
		}
		list = append(list, info)
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"executions": list, "more": more})
}
