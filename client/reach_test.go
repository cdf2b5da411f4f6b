package client_test

import (
	"context"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestAFrozenServer: one that takes requests and says nothing is out of reach after about as long
// as patience lasts, whatever it was asked.
func TestAFrozenServer(t *testing.T) {
	t.Parallel()
	const patience = 8 * time.Second
	key := messages.SessionKey{Session: "s"}
	for name, do := range map[string]func(context.Context, *client.Client) error{
		"health": func(ctx context.Context, c *client.Client) error { _, err := c.Health(ctx); return err },
		"start": func(ctx context.Context, c *client.Client) error {
			_, err := c.Start(ctx, client.Execute{Session: "s"})
			return err
		},
		"wait":  func(ctx context.Context, c *client.Client) error { _, err := c.Wait(ctx, "x1"); return err },
		"close": func(ctx context.Context, c *client.Client) error { return c.CloseSession(ctx, key) },
		"create": func(ctx context.Context, c *client.Client) error {
			_, err := c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"})
			return err
		},
		"process": func(ctx context.Context, c *client.Client) error {
			_, err := c.StartProcess(ctx, "w", client.NewProcess{Args: []string{"true"}})
			return err
		},
		"events": func(ctx context.Context, c *client.Client) error {
			_, err := numbers(c.Events(ctx, "x1", 0))
			return err
		},
		"list": func(ctx context.Context, c *client.Client) error {
			_, err := c.ListFiles(ctx, "w", client.ListFiles{})
			return err
		},
		"read": func(ctx context.Context, c *client.Client) error {
			_, err := c.OpenFile(ctx, "w", "f", client.ReadFile{})
			return err
		},
		"write": func(ctx context.Context, c *client.Client) error {
			_, err := c.WriteFile(ctx, "w", "f", strings.NewReader("x"), client.WriteFile{})
			return err
		},
		"artifact": func(ctx context.Context, c *client.Client) error { _, err := c.ReadArtifact(ctx, 1, 0, 0); return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			var begun atomic.Int64
			c, err := client.New(client.Options{URL: "http://h", Patience: patience, Transport: trips(func(r *http.Request) (*http.Response, error) {
				if !strings.HasSuffix(r.URL.Path, "/health") {
					begun.Add(1)
				}
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			})})
			require.NoError(t, err)
			defer c.Close()
			from := time.Now()
			err = do(t.Context(), c)
			require.ErrorContains(t, err, "the server does not answer", name)
			require.NotErrorIs(t, err, context.Canceled, name)
			require.GreaterOrEqual(t, time.Since(from), patience, name)
			require.LessOrEqual(t, time.Since(from), patience*3/2, name)
			require.LessOrEqual(t, begun.Load(), int64(1), "%s: sent again", name)
		})
	}
}

// TestAnAnswerThatTakesItsTime is waited for while the server answers others, or takes no
// connections any more.
func TestAnAnswerThatTakesItsTime(t *testing.T) {
	t.Parallel()
	for name, health := range map[string]func() (*http.Response, error){
		"answers": func() (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusUnauthorized, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		},
		"ends": func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: errors.New("refused")} },
	} {
		synctest.Test(t, func(t *testing.T) {
			var begun, asked atomic.Int64
			c, err := client.New(client.Options{URL: "http://h", Patience: time.Second, Transport: trips(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(r.URL.Path, "/health") {
					asked.Add(1)
					return health()
				}
				begun.Add(1)
				select {
				case <-time.After(time.Hour):
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
				case <-r.Context().Done():
					return nil, context.Cause(r.Context())
				}
			})})
			require.NoError(t, err)
			defer c.Close()
			_, err = c.Start(t.Context(), client.Execute{Session: "s"})
			require.NoError(t, err, name)
			require.EqualValues(t, 1, begun.Load(), name)
			require.Greater(t, asked.Load(), int64(100), name)
		})
	}
}

// slowly is a body that brings a byte now and then.
type slowly struct{ left int }

// Read reads.
func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	time.Sleep(5 * time.Second)
	p[0] = ' '
	return 1, nil
}

// Close does nothing.
func (s *slowly) Close() error { return nil }

// TestWhatStillComesIsProgress, however long it takes in all.
func TestWhatStillComesIsProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(client.Options{URL: "http://h", Patience: 8 * time.Second, Transport: trips(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: struct {
				io.Reader
				io.Closer
			}{io.MultiReader(&slowly{20}, strings.NewReader(`{"status":"ok"}`)), io.NopCloser(nil)}}, nil
		})})
		require.NoError(t, err)
		defer c.Close()
		h, err := c.Health(t.Context())
		require.NoError(t, err)
		require.Equal(t, "ok", h.Status)
	})
}

// TestWhatIsNotTrusted is told at once, with what helps.
func TestWhatIsNotTrusted(t *testing.T) {
	t.Parallel()
	quiet := log.New(io.Discard, "", 0)
	var asked atomic.Int64
	count := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) })
	secret, plain := httptest.NewUnstartedServer(count), httptest.NewUnstartedServer(count)
	secret.Config.ErrorLog, plain.Config.ErrorLog = quiet, quiet
	secret.StartTLS()
	plain.Start()
	t.Cleanup(secret.Close)
	t.Cleanup(plain.Close)
	for url, want := range map[string]string{
		secret.URL: "to trust an authority of your own, name the file of its certificate in SSL_CERT_FILE",
		strings.Replace(plain.URL, "http:", "https:", 1): "is it http in place of https?",
	} {
		c, err := client.New(client.Options{URL: url, Patience: time.Hour})
		require.NoError(t, err)
		_, err = c.Health(t.Context())
		require.ErrorContains(t, err, want)
		_, err = c.Start(t.Context(), client.Execute{Session: "s"})
		require.ErrorContains(t, err, want)
		_, err = numbers(c.Events(t.Context(), "x1", 0))
		require.ErrorContains(t, err, want)
		c.Close()
	}
	require.Zero(t, asked.Load())
}

// TestAProcessIsLostWithItsServer, and one that never was is not found.
func TestAProcessIsLostWithItsServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after http.Header
		lost          bool
	}{
		"started again":    {http.Header{"Coppice-Server": {"L1"}}, http.Header{"Coppice-Server": {"L2"}}, true},
		"the same life":    {http.Header{"Coppice-Server": {"L1"}}, http.Header{"Coppice-Server": {"L1"}}, false},
		"a server before":  {nil, nil, false},
		"a fleet":          {http.Header{"Coppice-Server": {"L1"}, "Coppice-Node": {"n"}}, http.Header{"Coppice-Server": {"L2"}}, false},
		"it is one by now": {http.Header{"Coppice-Server": {"L1"}}, http.Header{"Coppice-Server": {"L2"}, "Coppice-Node": {"n"}}, false},
	} {
		_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
			header := tc.after
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/processes") {
				header = tc.before
			}
			if r.Header.Get("Coppice-Server") == "?" {
				maps.Copy(w.Header(), header)
			}
			switch {
			case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/processes"):
				_, _ = io.WriteString(w, `{"id":"p1"}`)
			case strings.HasSuffix(r.URL.Path, "/health"):
				_, _ = io.WriteString(w, `{}`)
			default:
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"error":{"code":"not_found","message":"there is no such workspace"}}`)
			}
		})
		ctx := t.Context()
		p, err := c.StartProcess(ctx, "w", client.NewProcess{Args: []string{"true"}})
		require.NoError(t, err)
		for id, lost := range map[string]bool{p.ID: tc.lost, "never": false} {
			_, info := c.Process(ctx, "w", id)
			_, wait := c.WaitProcess(ctx, "w", id)
			_, end := c.EndProcess(ctx, "w", id, 0)
			_, write := c.WriteProcess(ctx, "w", id, []byte("x"))
			var events error
			for _, err := range c.ProcessEvents(ctx, "w", id, 0) {
				events = err
			}
			for _, err := range []error{info, wait, end, write, events, c.SignalProcess(ctx, "w", id, "TERM")} {
				told, ok := errors.AsType[*client.Error](err)
				require.True(t, ok, "%s: %v", name, err)
				if lost {
					require.Equal(t, [2]any{http.StatusGone, "lost"}, [2]any{told.Status, told.Code}, name)
					require.Contains(t, told.Message, "while the process ran: what became of it is not known")
				} else {
					require.Equal(t, [2]any{http.StatusNotFound, "not_found"}, [2]any{told.Status, told.Code}, name)
				}
			}
		}
	}
}
