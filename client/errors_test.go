package client_test

import (
	"context"
	"errors"
	"io"
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

// TestAnAnswerThatSaysNo is an Error, whatever form it has, and is not asked for again.
func TestAnAnswerThatSaysNo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		want   client.Error
		text   string
	}{
		"in its form":      {409, `{"error":{"code":"busy","message":"it runs","hint":"wait"}}`, client.Error{Status: 409, Code: "busy", Message: "it runs", Hint: "wait"}, "it runs; wait"},
		"of a workspace":   {410, `{"error":{"code":"ended","message":"the workspace w has ended: it was asked to end","hint":"asked"}}`, client.Error{Status: 410, Code: "ended", Message: "the workspace w has ended: it was asked to end", Hint: "asked"}, "the workspace w has ended: it was asked to end"},
		"without a hint":   {404, `{"error":{"code":"not_found","message":"no such session"}}`, client.Error{Status: 404, Code: "not_found", Message: "no such session"}, "no such session"},
		"of a proxy":       {502, `<html>bad gateway</html>`, client.Error{Status: 502, Code: "unknown", Message: "the server answered with status 502"}, "the server answered with status 502"},
		"with nothing":     {500, ``, client.Error{Status: 500, Code: "unknown", Message: "the server answered with status 500"}, "the server answered with status 500"},
		"with other JSON":  {400, `{"error":"x"}`, client.Error{Status: 400, Code: "unknown", Message: "the server answered with status 400"}, "the server answered with status 400"},
		"with no message":  {400, `{"error":{"code":"x"}}`, client.Error{Status: 400, Code: "unknown", Message: "the server answered with status 400"}, "the server answered with status 400"},
		"not there, moved": {307, ``, client.Error{Status: 307, Code: "unknown", Message: "the server answered with status 307"}, "the server answered with status 307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, client.Options{}, says(tc.status, tc.body))
			_, err := c.Health(ctx)
			told, ok := errors.AsType[*client.Error](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tc.want, *told)
			require.EqualError(t, told, tc.text)
			for _, err := range c.Events(ctx, "x1", 0) {
				require.ErrorContains(t, err, "events of execution x1 after 0: "+tc.text)
			}
			for _, err := range c.Changes(ctx, 3) {
				require.ErrorContains(t, err, "changes after 3: "+tc.text)
			}
			for _, err := range c.Run(ctx, client.Execute{Session: "a"}) {
				require.EqualError(t, err, tc.text)
			}
			_, err = c.ReadArtifact(ctx, 1, 0, 0)
			require.ErrorContains(t, err, tc.text)
			_, err = c.RunTool(ctx, "a", client.RunTool{}, nil)
			require.ErrorContains(t, err, tc.text)
			_, err = c.Wait(ctx, "x1")
			require.EqualError(t, err, tc.text)
			require.Len(t, s.seen(), 7, "each is asked once")
		})
	}
}

// TestAnAnswerThatMakesNoSense is an error that says which.
func TestAnAnswerThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{", "<html>", `{"status":1}`, "\x00"} {
		s, c := serve(t, client.Options{}, says(http.StatusOK, body))
		_, err := c.Health(ctx)
		require.ErrorContains(t, err, "GET api/health: read the answer: ", body)
		require.Len(t, s.seen(), 1, "it would be the same again")
	}
	_, c := serve(t, client.Options{}, says(http.StatusOK, ""))
	h, err := c.Health(ctx)
	require.NoError(t, err, "an empty answer is one without a value")
	require.Equal(t, client.Health{}, h)
	_, err = c.Start(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "\xff"}}})
	require.NoError(t, err, "what is no UTF-8 is replaced on its way")
}

// TestTheTokenGoesToTheServerAlone: a server that sends the client elsewhere is not
// followed.
func TestTheTokenGoesToTheServerAlone(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked with %q", r.URL, r.Header)
	}))
	defer elsewhere.Close()
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) })
	_, err := c.Tree(ctx)
	told, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, http.StatusFound, told.Status)
}

// TestAWrongToken is told by the server; the error does not hold it.
func TestAWrongToken(t *testing.T) {
	t.Parallel()
	s, right := serve(t, client.Options{}, says(http.StatusOK, "{}"))
	_, err := right.Health(ctx)
	require.NoError(t, err)
	wrong, err := client.New(client.Options{URL: s.URL, Token: "hunter2"})
	require.NoError(t, err)
	defer wrong.Close()
	_, err = wrong.Health(ctx)
	told, ok := errors.AsType[*client.Error](err)
	require.True(t, ok)
	require.Equal(t, http.StatusUnauthorized, told.Status)
	require.NotContains(t, err.Error(), "hunter2")
}

// TestABrokenConnection is made again for what may be repeated, and not for the rest.
func TestABrokenConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do    func(*client.Client) error
		again bool
	}{
		"health":    {func(c *client.Client) error { _, err := c.Health(ctx); return err }, true},
		"cancel":    {func(c *client.Client) error { return c.Cancel(ctx, "x1") }, true},
		"pin":       {func(c *client.Client) error { return c.Pin(ctx, key, true) }, true},
		"close":     {func(c *client.Client) error { return c.CloseSession(ctx, key) }, false},
		"interrupt": {func(c *client.Client) error { return c.Interrupt(ctx, key) }, false},
		"reset":     {func(c *client.Client) error { return c.Reset(ctx, key) }, false},
		"fork":      {func(c *client.Client) error { _, err := c.Fork(ctx, key, 1, ""); return err }, false},
		"answer":    {func(c *client.Client) error { _, err := c.Answer(ctx, "x1", "q", "v"); return err }, true}, // a question takes one
		"stop tool": {func(c *client.Client) error { _, err := c.StopTool(ctx, "a"); return err }, false},
		"run tool":  {func(c *client.Client) error { _, err := c.RunTool(ctx, "a", client.RunTool{}, nil); return err }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			s, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				if tries.Add(1) == 1 {
					w.Header().Set("Content-Length", "100")
					_, _ = io.WriteString(w, `{"status"`)
					cut(w)
				}
				says(http.StatusOK, `{}`)(w, r)
			})
			err := tc.do(c)
			if tc.again {
				require.NoError(t, err)
				require.Len(t, s.seen(), 2)
				return
			}
			require.Error(t, err)
			require.Len(t, s.seen(), 1)
		})
	}
}

// trips is a transport whose answers the test gives.
type trips func(*http.Request) (*http.Response, error)

// RoundTrip answers.
func (t trips) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// TestPatience: a server that is out of reach is asked again until patience ends, with
// longer and longer pauses; none at all when it is negative.
func TestPatience(t *testing.T) {
	t.Parallel()
	for patience, want := range map[time.Duration][2]int{0: {30, 45}, 3 * time.Second: {8, 12}, -1: {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			c, err := client.New(client.Options{URL: "http://127.0.0.1:1", Token: token, Patience: patience, Transport: trips(func(*http.Request) (*http.Response, error) {
				tries++
				return nil, errors.New("out of reach")
			})})
			require.NoError(t, err)
			defer c.Close()
			from := time.Now()
			_, err = c.Health(t.Context())
			require.EqualError(t, err, "GET api/health: out of reach", "the address is not named: our own words do")
			require.GreaterOrEqual(t, tries, want[0])
			require.LessOrEqual(t, tries, want[1])
			least := patience
			if patience == 0 {
				least = 30 * time.Second
			}
			require.GreaterOrEqual(t, time.Since(from), least)
			require.Less(t, time.Since(from), max(least, 0)+2*time.Second)
		})
	}
}

// TestTheEndOfAContext ends what waits, at once.
func TestTheEndOfAContext(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, do := range map[string]func(context.Context, *client.Client) error{
		"health": func(ctx context.Context, c *client.Client) error { _, err := c.Health(ctx); return err },
		"wait":   func(ctx context.Context, c *client.Client) error { _, err := c.Wait(ctx, "x1"); return err },
		"tool": func(ctx context.Context, c *client.Client) error {
			_, err := c.RunTool(ctx, "a", client.RunTool{}, nil)
			return err
		},
		"artifact": func(ctx context.Context, c *client.Client) error { _, err := c.ReadArtifact(ctx, 1, 0, 0); return err },
		"events": func(ctx context.Context, c *client.Client) error {
			for _, err := range c.Events(ctx, "x1", 0) {
				return err
			}
			return nil
		},
		"changes": func(ctx context.Context, c *client.Client) error {
			for _, err := range c.Changes(ctx, 0) {
				return err
			}
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c, err := client.New(client.Options{URL: "http://127.0.0.1:1", Transport: trips(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})})
			require.NoError(t, err)
			defer c.Close()
			time.AfterFunc(time.Second, func() { cancel(enough) })
			from := time.Now()
			err = do(ctx, c)
			require.Error(t, err, name)
			require.True(t, errors.Is(err, enough) || errors.Is(err, context.Canceled), "%s: %v", name, err)
			require.Equal(t, time.Second, time.Since(from), name)
		})
	}
}

// TestNewRefuses what is no address of a server.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "127.0.0.1:7788", "ftp://127.0.0.1", "http://", "http://[::1", "/api"} {
		_, err := client.New(client.Options{URL: url})
		require.ErrorContains(t, err, "it is like http://127.0.0.1:7788", url)
	}
	for _, url := range []string{"http://127.0.0.1:7788", "https://127.0.0.1", "http://localhost:1/below/"} {
		c, err := client.New(client.Options{URL: url})
		require.NoError(t, err, url)
		c.Close()
	}
}

// TestAnAddressMayHaveAPath, as behind a proxy.
func TestAnAddressMayHaveAPath(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://h/below", "http://h/below/"} {
		var asked string
		c, err := client.New(client.Options{URL: base, Transport: trips(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		})})
		require.NoError(t, err)
		_, err = c.Health(ctx)
		require.NoError(t, err)
		require.Equal(t, "http://h/below/api/health", asked)
		c.Close()
	}
}
