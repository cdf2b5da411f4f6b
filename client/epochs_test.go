package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestEpochs: a client of a fleet sends the epoch that it has seen a session in, goes on in
// the one that there is when it has seen none, and hears of a loss before anything begins.
func TestEpochs(t *testing.T) {
	t.Parallel()
	type step struct {
		sends   string // the epoch that the request names
		answers string // ok EPOCH, CODE EPOCH, or cut
	}
	for name, tc := range map[string]struct {
		steps []step
		codes []string // of each Start
	}{
		"alone":               {[]step{{"", "ok"}, {"", "ok"}}, []string{"", ""}},
		"seen":                {[]step{{"", "ok 1"}, {"1", "ok 1"}}, []string{"", ""}},
		"none seen":           {[]step{{"", "epoch_needed 3"}, {"3", "ok 3"}}, []string{""}},
		"lost":                {[]step{{"", "ok 1"}, {"1", "epoch_gone 2"}, {"2", "ok 2"}}, []string{"", "epoch_gone", ""}},
		"sent before":         {[]step{{"", "cut"}, {"", "epoch_needed 2"}, {"2", "ok 2"}}, []string{"epoch_needed", ""}},
		"lost, sent before":   {[]step{{"", "ok 1"}, {"1", "cut"}, {"1", "epoch_gone 2"}}, []string{"", "epoch_gone"}},
		"closed":              {[]step{{"", "ok 1"}, {"", "ok 1"}, {"", "epoch_needed 2"}, {"2", "ok 2"}}, []string{"", "close", ""}},
		"closed, and was not": {[]step{{"", "ok 1"}, {"", "cut"}, {"1", "epoch_gone 2"}}, []string{"", "close", "epoch_gone"}},
		"ended before":        {[]step{{"", "ok 1"}, {"", "not_found 0"}, {"", "epoch_needed 2"}, {"2", "ok 2"}}, []string{"", "close", ""}},
		"needed twice in one": {[]step{{"", "epoch_needed 2"}, {"2", "epoch_gone 3"}, {"3", "ok 3"}}, []string{"epoch_gone", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex // a connection that was cut may be served still when the next one is
			steps := tc.steps
			next := func() (step, bool) {
				mu.Lock()
				defer mu.Unlock()
				if len(steps) == 0 {
					return step{}, false
				}
				now := steps[0]
				steps = steps[1:]
				return now, true
			}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Coppice-Node", "one")
				if r.URL.Path == "/api/health" { // before a request is sent again
					_, _ = fmt.Fprint(w, "{}")
					return
				}
				now, ok := next()
				if !ok {
					t.Error("one more request")
					return
				}
				if got := r.Header.Get("Coppice-Epoch"); got != now.sends {
					t.Errorf("sent the epoch %q, not %q", got, now.sends)
				}
				var code string
				var epoch int
				_, _ = fmt.Sscan(now.answers, &code, &epoch)
				switch {
				case code == "cut":
					panic(http.ErrAbortHandler)
				case code == "not_found":
					w.WriteHeader(http.StatusNotFound)
					_, _ = fmt.Fprint(w, `{"error":{"code":"not_found","message":"no"}}`)
					return
				case code != "ok":
					w.WriteHeader(http.StatusConflict)
					_, _ = fmt.Fprintf(w, `{"error":{"code":%q,"message":"no","epoch":%d}}`, code, epoch)
					return
				case epoch != 0:
					w.Header().Set("Coppice-Epoch", fmt.Sprint(epoch))
				}
				_, _ = fmt.Fprint(w, `{"id":"x"}`)
			}))
			defer s.Close()
			c, err := client.New(client.Options{URL: s.URL, Token: "t"})
			require.NoError(t, err)
			defer c.Close()
			for _, want := range tc.codes {
				if want == "close" {
					_ = c.CloseSession(t.Context(), messages.SessionKey{Session: "s"}) // what it says is for others to test
					continue
				}
				_, err := c.Start(t.Context(), client.Execute{Session: "s", Cells: []messages.Cell{{Code: "1"}}})
				if want == "" {
					require.NoError(t, err)
					continue
				}
				var told *client.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, want, told.Code)
			}
			_, more := next()
			require.False(t, more, "a request was not made")
		})
	}
}

// TestWhereAnExecutionIs, as a fleet says it, is sent with what is asked about it.
func TestWhereAnExecutionIs(t *testing.T) {
	t.Parallel()
	const place = "cwd=%2Fw&epoch=1&session=s"
	want := []string{"", place, place + "&wait=30", place, place, place, ""}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(want) == 0 || r.URL.RawQuery != want[0] {
			t.Errorf("%s %s: the query is %q", r.Method, r.URL.Path, r.URL.RawQuery)
		} else {
			want = want[1:]
		}
		if r.URL.Path == "/api/executions" {
			w.Header().Set("Location", "/api/executions/x?"+place)
			_, _ = fmt.Fprint(w, `{"id":"x"}`)
			return
		}
		w.WriteHeader(http.StatusGone)
		_, _ = fmt.Fprint(w, `{"error":{"code":"lost","message":"no"}}`)
	}))
	defer s.Close()
	c, err := client.New(client.Options{URL: s.URL, Token: "t"})
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	_, err = c.Start(ctx, client.Execute{ID: "x", Session: "s", Cells: []messages.Cell{{Code: "1"}}})
	require.NoError(t, err)
	for _, ask := range []func() error{
		func() error { _, err := c.Execution(ctx, "x"); return err },
		func() error { _, err := c.Wait(ctx, "x"); return err },
		func() error { _, err := c.Answer(ctx, "x", "q", "v"); return err },
		func() error { return c.Cancel(ctx, "x") },
		func() error {
			for _, err := range c.Events(ctx, "x", 0) {
				return err
			}
			return nil
		},
		func() error { _, err := c.Execution(ctx, "y"); return err },
	} {
		var told *client.Error
		require.ErrorAs(t, ask(), &told)
		require.Equal(t, "lost", told.Code)
	}
	require.Empty(t, want)
}
