package client_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// TestASessionOfAServerThatWasStartedAgain: a server that has not kept its sessions cannot say
// that the variables of one are gone; who has used it knows.
func TestASessionOfAServerThatWasStartedAgain(t *testing.T) {
	t.Parallel()
	const note = "[This call got a new kernel: the server was started again, and does not have what the session had. The variables of earlier calls are gone.]"
	type call struct{ life, result string }
	const fresh, kept = `"outcome":"ok","state":"fresh","progress":{"first":true},"text":"hi"`, `"outcome":"ok","state":"kept","text":"hi"`
	key := messages.SessionKey{Session: "a", Workspace: "w"}
	for name, tc := range map[string]struct {
		calls []call
		do    func(*client.Client) error // before the last call
		want  string                     // the text of the last one
	}{
		"started again":         {[]call{{"L1", fresh}, {"L2", fresh}}, nil, note + "\n\nhi"},
		"without text":          {[]call{{"L1", fresh}, {"L2", strings.ReplaceAll(fresh, "hi", "")}}, nil, note},
		"kept once":             {[]call{{"L1", fresh}, {"L2", kept}, {"L3", fresh}}, nil, note + "\n\nhi"},
		"nothing ran":           {[]call{{"L1", fresh}, {"L2", `"outcome":"not_started","state":""`}, {"L2", fresh}}, nil, note + "\n\nhi"},
		"the first":             {[]call{{"L1", fresh}}, nil, "hi"},
		"the same":              {[]call{{"L1", fresh}, {"L1", fresh}}, nil, "hi"},
		"kept":                  {[]call{{"L1", fresh}, {"L2", kept}}, nil, "hi"},
		"told once":             {[]call{{"L1", fresh}, {"L2", fresh}, {"L2", kept}}, nil, "hi"},
		"the server says why":   {[]call{{"L1", fresh}, {"L2", fresh + `,"reason":"it was idle"`}}, nil, "hi"},
		"lost":                  {[]call{{"L1", fresh}, {"L1", `"outcome":"lost","state":"lost"`}, {"L2", fresh}}, nil, "hi"},
		"a server of before":    {[]call{{"", fresh}, {"", fresh}}, nil, "hi"},
		"a fleet":               {[]call{{"L1", fresh}, {"node", fresh}}, nil, "hi"},
		"closed":                {[]call{{"L1", fresh}, {"L2", fresh}}, func(c *client.Client) error { return c.CloseSession(t.Context(), key) }, "hi"},
		"reset":                 {[]call{{"L1", fresh}, {"L2", fresh}}, func(c *client.Client) error { return c.Reset(t.Context(), key) }, "hi"},
		"the workspace has end": {[]call{{"L1", fresh}, {"L2", fresh}}, func(c *client.Client) error { return c.EndWorkspace(t.Context(), "w") }, "hi"},
		"another has":           {[]call{{"L1", fresh}, {"L2", fresh}}, func(c *client.Client) error { return c.EndWorkspace(t.Context(), "v") }, note + "\n\nhi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now call
			_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/events"):
					streams(w, `{"seq":1,"cell":0,"type":"final","cells":[],`+now.result+`}`)
				case r.URL.Path == "/api/executions":
					if now.life == "node" {
						w.Header().Set("Coppice-Node", "one")
					}
					w.Header().Set("Coppice-Server", now.life)
					says(http.StatusCreated, `{"id":"x1"}`)(w, r)
				}
			})
			var last messages.Result
			for i := range tc.calls {
				now = tc.calls[i]
				if i == len(tc.calls)-1 && tc.do != nil {
					require.NoError(t, tc.do(c))
				}
				for e, err := range c.Run(ctx, client.Execute{ID: "x1", Session: "a", Workspace: "w", Cells: []messages.Cell{{Code: "1"}}}) {
					require.NoError(t, err)
					last = e.(messages.Final).Result //nolint:forcetypeassert // there is no other
				}
			}
			require.Equal(t, tc.want, last.Text)
			require.Equal(t, strings.Contains(tc.want, note), last.Reason == "the server was started again, and does not have what the session had")
		})
	}
}

// TestAServerThatComesLater is waited for by what is sent once, too: nothing was sent before there was a
// connection.
func TestAServerThatComesLater(t *testing.T) {
	t.Parallel()
	key := messages.SessionKey{Session: "a"}
	for name, ask := range map[string]func(*client.Client) error{
		"close":     func(c *client.Client) error { return c.CloseSession(ctx, key) },
		"interrupt": func(c *client.Client) error { return c.Interrupt(ctx, key) },
		"fork":      func(c *client.Client) error { _, err := c.Fork(ctx, key, 1, ""); return err },
		"start": func(c *client.Client) error {
			_, err := c.StartProcess(ctx, "w", client.NewProcess{Args: []string{"true"}})
			return err
		},
		"write": func(c *client.Client) error {
			_, err := c.WriteFile(ctx, "w", "f", strings.NewReader("what is read"), client.WriteFile{})
			return err
		},
		"input": func(c *client.Client) error {
			_, err := c.WriteProcess(ctx, "w", "p", []byte("what is read"))
			return err
		},
		"move": func(c *client.Client) error { _, err := c.MoveFile(ctx, "w", "f", "g", false); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			addr := l.Addr().String()
			require.NoError(t, l.Close())
			c, err := client.New(client.Options{URL: "http://" + addr, Token: token})
			require.NoError(t, err)
			defer c.Close()
			bodies := make(chan string, 10)
			time.AfterFunc(50*time.Millisecond, func() {
				l, err := net.Listen("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					bodies <- string(body)
					_, _ = fmt.Fprint(w, `{"id":"p","taken":12}`)
				})}}
				s.Start()
				t.Cleanup(s.Close)
			})
			require.NoError(t, ask(c))
			require.Len(t, bodies, 1)
			if name == "write" || name == "input" {
				require.Equal(t, "what is read", <-bodies)
			}
		})
	}
}
