package client_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestNothingIsSentToAnotherServerAgain: when an attempt to begin an execution may have arrived,
// it is sent again to that life of the server alone.
func TestNothingIsSentToAnotherServerAgain(t *testing.T) {
	t.Parallel()
	const begins, toL, health, look = "POST /api/executions ?", "POST /api/executions L", "GET /api/health ?", "GET /api/executions/x1 "
	for name, tc := range map[string]struct {
		answers map[string][]http.HandlerFunc // by what is asked, with the life that it is for
		want    []string
		code    string // of the error, "" for none
	}{
		"the same one": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {alive("L", 1e6)}, toL: {says(http.StatusCreated, `{"id":"x1"}`)},
		}, []string{begins, health, toL}, ""},
		"the same one, which ends then": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {alive("L", 1e6), alive("M", 1e-9)}, toL: {says(http.StatusGone, `{"error":{"code":"lost","message":"another life"}}`)},
			look: {says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no"}}`)},
		}, []string{begins, health, toL, health, look}, "lost"},
		"the same one, which is replaced then": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {alive("L", 1e6), alive("M", 1e-9)}, toL: {says(http.StatusGone, `{"error":{"code":"lost","message":"another life"}}`)},
			look: {says(http.StatusOK, `{"id":"x1"}`)},
		}, []string{begins, health, toL, health, look}, ""},
		"the next one, which knows it": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {alive("M", 1e-9)}, look: {says(http.StatusOK, `{"id":"x1"}`)},
		}, []string{begins, health, look}, ""},
		"the next one, which does not": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {alive("M", 1e-9)}, look: {says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no"}}`)},
		}, []string{begins, health, look}, "lost"},
		"it is not heard at once": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {cutting, alive("L", 1e6)}, toL: {cutting, says(http.StatusCreated, `{"id":"x1"}`)},
		}, []string{begins, health, health, toL, health, toL}, ""},
		"one that does not tell": {map[string][]http.HandlerFunc{
			begins: {cutting, says(http.StatusCreated, `{"id":"x1"}`)}, health: {says(http.StatusOK, `{"status":"ok"}`)},
		}, []string{begins, health, begins}, ""},
		"one that refuses to": {map[string][]http.HandlerFunc{
			begins: {cutting}, health: {says(http.StatusForbidden, `{"error":{"code":"scope","message":"no"}}`)},
		}, []string{begins, health}, "scope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var got []string
			_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				asks := r.Method + " " + r.URL.Path + " " + r.Header.Get("Coppice-Server")
				mu.Lock()
				got = append(got, asks)
				answers := tc.answers[asks]
				var answer http.HandlerFunc
				if len(answers) > 0 {
					answer = answers[0]
					tc.answers[asks] = answers[min(1, len(answers)-1):]
				}
				mu.Unlock()
				if answer == nil {
					t.Errorf("asked: %s", asks)
					return
				}
				answer(w, r)
			})
			x, err := c.Start(ctx, client.Execute{ID: "x1", Session: "a", Cells: []messages.Cell{{Code: "1"}}})
			if tc.code == "" {
				require.NoError(t, err)
				require.Equal(t, "x1", x.ID)
			} else {
				var told *client.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, tc.code, told.Code)
			}
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, tc.want, got)
		})
	}
}

func cutting(w http.ResponseWriter, _ *http.Request) { cut(w) }

// alive is how a life of a server is, which has served for some seconds.
func alive(life string, uptime float64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Coppice-Server", life)
		_ = json.NewEncoder(w).Encode(client.Health{Uptime: uptime})
	}
}

// TestWhatRanAtAServerThatIsGone is lost, and not merely unknown.
func TestWhatRanAtAServerThatIsGone(t *testing.T) {
	t.Parallel()
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			says(http.StatusCreated, `{"id":"x1"}`)(w, r)
			return
		}
		says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no"}}`)(w, r)
	})
	var told *client.Error
	for _, err := range c.Run(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "1"}}}) {
		require.ErrorAs(t, err, &told)
		require.Equal(t, "lost", told.Code)
	}
	require.NotNil(t, told)
	for _, err := range c.Events(ctx, "x1", 0) {
		require.ErrorAs(t, err, &told)
		require.Equal(t, "not_found", told.Code, "which may be what was asked for")
	}
}

// TestAClientFollowsItsServer: one that was found is where its user's server is, after that was
// started again, too. One that was made with an address stays there.
func TestAClientFollowsItsServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []string
	start := func(token string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			heard = append(heard, token)
			mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer "+token {
				says(http.StatusUnauthorized, `{"error":{"code":"unauthorized","message":"no"}}`)(w, r)
				return
			}
			says(http.StatusOK, `{"id":"x1"}`)(w, r)
		}))
		t.Cleanup(s.Close)
		return s
	}
	one, home, record := start("one"), t.TempDir(), me(t)
	record.URL, record.Token = one.URL, "one"
	leave(t, home, record)
	found, err := client.Find(client.FindOptions{Home: home})
	require.NoError(t, err)
	defer found.Close()
	named, err := client.New(client.Options{URL: one.URL, Token: "one", Patience: -1})
	require.NoError(t, err)
	defer named.Close()
	begin := func(c *client.Client) error {
		_, err := c.Start(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "1"}}})
		return err
	}
	require.NoError(t, begin(found))
	require.NoError(t, begin(named))

	// Another token at the same address: what was refused was not begun.
	one.Config.Handler = start("two").Config.Handler
	record.Token = "two"
	leave(t, home, record)
	require.NoError(t, begin(found))
	require.Equal(t, "two", found.Token())
	var told *client.Error
	require.ErrorAs(t, begin(named), &told)
	require.Equal(t, http.StatusUnauthorized, told.Status)

	// Another address: there is no connection to the one before.
	three := start("three")
	one.Close()
	record.URL, record.Token = three.URL, "three"
	leave(t, home, record)
	require.NoError(t, begin(found))
	require.Equal(t, three.URL, found.URL())
	require.Error(t, begin(named))

	// And a socket, whose record comes later than the request.
	three.Close()
	path := filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Remove(filepath.Join(home, ".coppice", "serve.json")))
	done := make(chan error)
	go func() { done <- begin(found) }()
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	four := &http.Server{Handler: start("four").Config.Handler}
	go func() { _ = four.Serve(listener) }()
	defer four.Close()
	record.Token, record.Socket = "four", path
	leave(t, home, record)
	require.NoError(t, <-done)
	require.Equal(t, "four", found.Token())
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, heard, "four")
}

// TestAnotherServerIsNotTheFirst: however long it has served, it has not heard the first attempt.
func TestAnotherServerIsNotTheFirst(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asks []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asks = append(asks, r.Method+" "+r.URL.Path)
		mu.Unlock()
		switch r.URL.Path {
		case "/api/health":
			alive("L", 1e6)(w, r)
		default:
			says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no"}}`)(w, r)
		}
	}))
	t.Cleanup(other.Close)
	home, record := t.TempDir(), me(t)
	one := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := record
		now.URL = other.URL
		leave(t, home, now)
		cut(w)
	}))
	t.Cleanup(one.Close)
	record.URL = one.URL
	leave(t, home, record)
	c, err := client.Find(client.FindOptions{Home: home})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Start(ctx, client.Execute{ID: "x1", Session: "a", Cells: []messages.Cell{{Code: "1"}}})
	var told *client.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, "lost", told.Code)
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"GET /api/health", "GET /api/executions/x1"}, asks)
}
