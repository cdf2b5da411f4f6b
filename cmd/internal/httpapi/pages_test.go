package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// looksBack asks for what a session knows, executed, and what happened.
func (s *server) looksBack() {
	t, ctx := s.t, s.t.Context()
	key := messages.SessionKey{Session: "back", Cwd: s.cwd}
	require.Equal(t, messages.OutcomeOK, s.run("back", "import math\nétage = 41").Outcome)
	matches, start, err := s.Complete(ctx, key, "é = math.sqr", 12)
	require.NoError(t, err)
	require.Contains(t, []int{4, 9}, start, "characters are counted, not bytes")
	require.Condition(t, func() bool {
		return slices.ContainsFunc(matches, func(m string) bool { return strings.Contains(m, "sqrt") })
	}, "%v", matches)
	text, err := s.Inspect(ctx, key, "math.sqrt", 9)
	require.NoError(t, err)
	require.Contains(t, text, "square root")
	for body, want := range map[string]int{
		`{"code": "a"}`: 400, `{"code": "a", "cursor": 2}`: 200, `{"code": "a", "cursor": 1e300}`: 200, `{"code": "a", "cursor": 0.5}`: 400, `{"code": "a", "cursor": -1}`: 400, `{"code": "", "cursor": 0.0}`: 200,
	} {
		status, answer := s.ask("POST", "/api/sessions/back/inspect", body)
		require.Equal(t, want, status, "%s: %s", body, answer)
	}
	_, _, err = s.Complete(ctx, messages.SessionKey{Session: "none"}, "a", 1)
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	_, err = s.Inspect(ctx, messages.SessionKey{Session: "none"}, "a", 1)
	require.Equal(t, http.StatusNotFound, statusOf(t, err))

	x, err := s.Start(ctx, client.Execute{ID: "back-long", Session: "back", Cells: cells("import time\nprint('up', flush=True)\ntime.sleep(600)", "never = 1")})
	require.NoError(t, err)
	s.prints(x.ID)
	_, _, err = s.Complete(ctx, key, "mat", 3)
	require.Equal(t, http.StatusConflict, statusOf(t, err), "%v", err)
	_, err = s.Inspect(ctx, key, "math", 4)
	require.Equal(t, http.StatusConflict, statusOf(t, err), "%v", err)
	require.NoError(t, s.Cancel(ctx, x.ID))
	_, err = s.Wait(ctx, x.ID)
	require.NoError(t, err)

	x, err = s.Execution(ctx, "back-long")
	require.NoError(t, err)
	require.Equal(t, "import time\nprint('up', flush=True)\ntime.sleep(600)\n\nnever = 1", x.Code)
	for query, want := range map[string]int{
		"filter=NEVER+back": 1, "filter=nowhere": 0, "filter=%C3%A9tage&limit=1": 1, "outcome=cancelled&session=back": 1, "before=back-long&session=back": 1,
		"session=back": 2, "session=back&limit=1": 1, "session=back&until=2001-01-01T00:00:00Z": 0, "before=unknown": 0,
	} {
		status, body := s.ask("GET", "/api/executions?"+query, "")
		require.Equal(t, 200, status, query)
		require.Equal(t, want, strings.Count(body, `"started":`), "%s: %s", query, body)
		require.Equal(t, query == "session=back&limit=1", strings.Contains(body, `"more":true`), query)
	}
	for _, query := range []string{"since=today", "since=", "until=", "limit=0", "limit=1001", "filter=" + strings.Repeat("x", 201)} {
		for _, path := range []string{"executions", "events"} {
			status, body := s.ask("GET", "/api/"+path+"?"+query, "")
			require.Equal(t, 400, status, "%s %s: %s", path, query, body)
		}
	}
	s.pages()
	s.book(key)
	require.NoError(t, s.CloseSession(ctx, key))
}

// pages turns over what happened, forwards and backwards: each event is there once.
func (s *server) pages() {
	t, ctx := s.t, s.t.Context()
	last, err := s.Past(ctx, client.LookBack{Limit: 3})
	require.NoError(t, err)
	require.Len(t, last.Events, 3)
	require.True(t, last.More)
	var back []uint64
	for page, before := last, uint64(0); ; {
		for _, c := range slices.Backward(page.Events) {
			back = append(back, c.Seq)
		}
		before = page.Events[0].Seq
		if !page.More {
			break
		}
		page, err = s.Past(ctx, client.LookBack{Before: before, Limit: 7})
		require.NoError(t, err)
	}
	slices.Reverse(back)
	require.Equal(t, uint64(1), back[0])
	for i, n := range back {
		require.Equal(t, uint64(i+1), n) //nolint:gosec // it is small
	}
	first, err := s.Past(ctx, client.LookBack{After: 2, Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []uint64{3, 4}, []uint64{first.Events[0].Seq, first.Events[1].Seq})
	found, err := s.Past(ctx, client.LookBack{Filter: "execution BACK cancelled"})
	require.NoError(t, err)
	require.Len(t, found.Events, 1)
	require.Equal(t, "back-long", found.Events[0].Execution.ID)
	at := found.Events[0].At
	same, err := s.Past(ctx, client.LookBack{Filter: "back-long", Since: at, Until: at})
	require.NoError(t, err)
	require.Equal(t, found.Events, same.Events)
	none, err := s.Past(ctx, client.LookBack{Until: at.Add(-24 * time.Hour)})
	require.NoError(t, err)
	require.Empty(t, none.Events)
	for _, query := range []string{"after=x", "before=0"} {
		status, _ := s.ask("GET", "/api/events?"+query, "")
		require.Equal(t, 400, status, query)
	}
}

// book reads the notebook of the session.
func (s *server) book(key messages.SessionKey) {
	t := s.t
	require.Equal(t, messages.OutcomeError, s.run("back", "print('one')\nétage + 1", "1 / 0", "2").Outcome)
	data, err := s.Notebook(t.Context(), key)
	require.NoError(t, err)
	d, err := notebook.Parse(data)
	require.NoError(t, err)
	require.Empty(t, d.Validate())
	major, minor := d.Version()
	require.Equal(t, []int{4, 5}, []int{major, minor})
	var sources []string
	var outputs []int
	for _, c := range d.Cells() {
		sources = append(sources, c.Source())
		outputs = append(outputs, c.OutputCount())
	}
	require.Equal(t, []string{"import math\nétage = 41", "import time\nprint('up', flush=True)\ntime.sleep(600)", "never = 1", "print('one')\nétage + 1", "1 / 0", "2"}, sources)
	require.Equal(t, []int{0, 2, 0, 2, 1, 0}, outputs, "%s", data)
	count, ran := d.Cells()[4].ExecutionCount()
	require.True(t, ran)
	require.Equal(t, 4, count)
	_, ran = d.Cells()[2].ExecutionCount()
	require.False(t, ran)
	require.Contains(t, string(data), `"ename": "ZeroDivisionError"`)
	_, err = s.Notebook(t.Context(), messages.SessionKey{Session: "none"})
	require.Equal(t, http.StatusNotFound, statusOf(t, err))
	status, _ := s.ask("GET", "/api/sessions/back/notebook?workspace=none", "")
	require.Equal(t, http.StatusNotFound, status)
}

// A notebook of a session holds what notebooks were run in it as a remark.
func TestLooksBack(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	s.looksBack()
	_, err := s.ApplyNotebook(t.Context(), client.Apply{Path: "b.ipynb", Text: "# %% [code]\n1\n"})
	require.NoError(t, err)
	x, err := s.RunNotebook(t.Context(), client.RunNotebook{Path: "b.ipynb", Session: "book"})
	require.NoError(t, err)
	_, err = s.Wait(t.Context(), x.ID)
	require.NoError(t, err)
	data, err := s.Notebook(t.Context(), messages.SessionKey{Session: "book"})
	require.NoError(t, err)
	require.Contains(t, string(data), "Ran the notebook `")
}
