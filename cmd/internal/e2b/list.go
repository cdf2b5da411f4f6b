package e2b

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/workspace"
)

// maxPage is how many sandboxes one page has at most, and unless a client wants fewer.
const maxPage = 100

// nextHeader is where the next page of a list begins.
const nextHeader = "X-Next-Token"

// placesHeader is where the entries of a list stand, one after the other, as one node of a fleet
// tells another one.
const placesHeader = "Coppice-Places"

// query is which sandboxes a client wants.
type query struct {
	metadata  map[string]string
	running   bool // those that run are among them
	paused    bool // those that are paused are
	template  string
	after     time.Time
	ascending bool
	limit     int
	from      string // the one after which the page begins
}

// queryOf reads it from the address of a request.
func queryOf(q url.Values) (query, error) {
	o := query{running: true, paused: true, metadata: map[string]string{}, template: q.Get("template"), limit: maxPage}
	fields, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return o, fmt.Errorf("the metadata cannot be read: %w", err)
	}
	for name := range fields { // clients encode names and values, and then all of it
		o.metadata[decoded(name)] = decoded(fields.Get(name))
	}
	if states := strings.Join(q["state"], ","); states != "" {
		o.running = slices.Contains(strings.Split(states, ","), "running")
		o.paused = slices.Contains(strings.Split(states, ","), "paused")
	}
	if at := cmp.Or(q.Get("startedAfter"), q.Get("started_after")); at != "" {
		if o.after, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return o, fmt.Errorf("startedAfter cannot be read: %w", err)
		}
	}
	switch order := q.Get("order"); order {
	case "", "desc":
	case "asc":
		o.ascending = true
	default:
		return o, fmt.Errorf("the order %.40q is not one of asc, desc", order)
	}
	if text := q.Get("limit"); text != "" {
		if o.limit, err = strconv.Atoi(text); err != nil || o.limit < 1 {
			return o, fmt.Errorf("the limit %.40q is not a number from 1", text)
		}
		o.limit = min(o.limit, maxPage)
	}
	if token := q.Get("nextToken"); token != "" {
		from, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return o, fmt.Errorf("the token of the page cannot be read")
		}
		o.from = string(from)
	}
	return o, nil
}

// decoded is a text as it was before it was encoded; one that was not is itself.
func decoded(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// place is where a sandbox stands in a list: by its start, then by its name.
func place(i workspace.Info) string { return fmt.Sprintf("%020d %s", i.Made.UnixNano(), i.Name) }

// takes reports whether a client wants a sandbox.
func (o query) takes(s *sandbox, i workspace.Info) bool {
	for name, value := range o.metadata {
		if has, ok := i.Labels[name]; !ok || has != value {
			return false
		}
	}
	wanted := o.running
	if !s.rest.since().IsZero() {
		wanted = o.paused
	}
	return wanted && (o.template == "" || o.template == s.template) && (o.after.IsZero() || i.Made.After(o.after))
}

// list describes sandboxes, page by page.
func (a *API) list(w http.ResponseWriter, r *http.Request) {
	o, err := queryOf(r.URL.Query())
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	all := a.o.Host.Workspaces().List(workspace.Filter{})
	slices.SortFunc(all, func(x, y workspace.Info) int {
		if o.ascending {
			return strings.Compare(place(x), place(y))
		}
		return strings.Compare(place(y), place(x))
	})
	page := []detail{}
	var places []string
	for _, i := range all {
		if o.from != "" && (o.ascending && place(i) <= o.from || !o.ascending && place(i) >= o.from) {
			continue
		}
		s := a.sandbox(i.Name)
		if s == nil || !o.takes(s, i) {
			continue
		}
		if len(page) == o.limit {
			w.Header().Set(nextHeader, base64.RawURLEncoding.EncodeToString([]byte(places[len(places)-1])))
			break
		}
		page, places = append(page, a.detail(s)), append(places, place(i))
	}
	a.placed(w, places)
	answer.JSON(w, http.StatusOK, page)
}

// placed notes where the entries of a list stand, for who merges it with others.
func (a *API) placed(w http.ResponseWriter, places []string) {
	if a.o.Secret == nil {
		return
	}
	for i := range places {
		places[i] = base64.RawURLEncoding.EncodeToString([]byte(places[i]))
	}
	w.Header().Set(placesHeader, strings.Join(places, ","))
}
