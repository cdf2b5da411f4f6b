package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// lease is a Turn that ends on command.
type lease struct {
	news         string
	life         context.Context
	die          context.CancelFunc
	shows, ended atomic.Int64
	begun        atomic.Int64
}

var errOver = errors.New("the lease is over")

// Life implements httpapi.Turn.
func (l *lease) Life() context.Context { return l.life }

// News implements httpapi.Turn.
func (l *lease) News() string { return l.news }

// Show implements httpapi.Turn.
func (l *lease) Show(context.Context) error {
	l.shows.Add(1)
	return l.Answer(context.Background())
}

// Answer implements httpapi.Turn.
func (l *lease) Answer(context.Context) error {
	if l.life.Err() != nil {
		return errOver
	}
	return nil
}

// Begun implements httpapi.Turn.
func (l *lease) Begun() { l.begun.Add(1) }

// End implements httpapi.Turn.
func (l *lease) End() { l.ended.Add(1) }

// post sends an execution to a handler of the API, with what it has to ask for a turn.
func post(t *testing.T, h http.Handler, enter httpapi.Enter, e client.Execute) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(httpapi.WithEnter(t.Context(), enter), http.MethodPost, "/api/executions", strings.NewReader(text(t, e)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestTurns: an execution that needs leave and has none is not begun; one whose leave ends
// while it runs is lost, with all that nobody has seen of it; one that keeps it is as any.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	var handler http.Handler
	for _, m := range s.mounts {
		if m.Pattern == "POST /api/executions" {
			handler = m.Handler
		}
	}
	start := func(l *lease, refuse error, id string, code ...string) *httptest.ResponseRecorder {
		enter := func(_ context.Context, given string) (httpapi.Turn, error) {
			require.Equal(t, id, given)
			if refuse != nil {
				return nil, refuse
			}
			return l, nil
		}
		return post(t, handler, enter, client.Execute{ID: id, Session: "s", Cells: cells(code...)})
	}
	refused := start(nil, &httpserver.Refusal{Status: http.StatusConflict, Problem: httpserver.Problem{Code: "epoch_gone", Message: "no", Epoch: 2}}, "e1", "x = 1")
	require.Equal(t, http.StatusConflict, refused.Code)
	require.JSONEq(t, `{"error":{"code":"epoch_gone","message":"no","epoch":2}}`, refused.Body.String())
	require.False(t, s.api.Knows("e1"))

	kept := &lease{news: "it begins anew"}
	kept.life, kept.die = context.WithCancel(t.Context())
	defer kept.die()
	require.Equal(t, http.StatusCreated, start(kept, nil, "e2", "print('seen')").Code)
	x, err := s.Wait(t.Context(), "e2")
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, x.Result.Outcome)
	require.Contains(t, x.Result.Notices, "it begins anew")
	var events []messages.Event
	for e, err := range s.Events(t.Context(), "e2", 0) {
		require.NoError(t, err)
		events = append(events, e)
	}
	require.IsType(t, messages.Notice{}, events[0], "it is told first")
	require.Equal(t, http.StatusOK, start(nil, errOver, "e2", "print('seen')").Code, "what is known needs no leave")
	require.EqualValues(t, 1, kept.ended.Load())
	require.EqualValues(t, 1, kept.begun.Load())

	full := &lease{news: "it begins anew", life: t.Context()}
	r := post(t, handler, func(context.Context, string) (httpapi.Turn, error) { return full, nil }, client.Execute{ID: "e5", Session: "s", Cells: cells("1"), Env: map[string]string{"=": ""}})
	require.Equal(t, http.StatusUnprocessableEntity, r.Code, r.Body)
	require.EqualValues(t, 1, full.ended.Load())
	require.Zero(t, full.begun.Load(), "nobody is told of what has no place")

	gone := &lease{}
	gone.life, gone.die = context.WithCancel(t.Context())
	require.Equal(t, http.StatusCreated, start(gone, nil, "e3", "print('first', flush=True)\nimport time\nwhile True: time.sleep(.01)").Code)
	for e, err := range s.Events(t.Context(), "e3", 0) { // until the first output was seen
		require.NoError(t, err)
		if _, ok := e.(messages.Stream); ok {
			break
		}
	}
	require.Positive(t, gone.shows.Load(), "each look asks")
	gone.die()
	x, err = s.Wait(t.Context(), "e3")
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeLost, x.Result.Outcome)
	require.Equal(t, messages.StateLost, x.Result.State)
	require.Contains(t, x.Result.Reason, "the lease is over")
	final, seen := 0, 0
	for e, err := range s.Events(t.Context(), "e3", 0) {
		require.NoError(t, err)
		switch e := e.(type) {
		case messages.Stream:
			seen++
		case messages.Final:
			final++
			require.Equal(t, messages.OutcomeLost, e.Result.Outcome)
		}
	}
	require.Equal(t, []int{1, 1}, []int{seen, final}, "what was seen stays, and nothing else does")

	unseen := &lease{}
	unseen.life, unseen.die = context.WithCancel(t.Context())
	require.Equal(t, http.StatusCreated, start(unseen, nil, "e4", "print('never', flush=True)\nimport time\nwhile True: time.sleep(.01)").Code)
	unseen.die()
	_, err = s.Wait(t.Context(), "e4")
	require.NoError(t, err)
	_, body := s.ask(http.MethodGet, "/api/executions/e4/events", "")
	require.NotContains(t, body, "never")
	require.Contains(t, body, `"outcome":"lost"`)
}
