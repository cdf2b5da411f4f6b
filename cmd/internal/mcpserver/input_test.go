package mcpserver_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
)

// person is a user who is asked by a client.
type person struct {
	mu     sync.Mutex
	asked  []string
	answer func(message string) *mcp.ElicitResult
}

func says(value string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": value}}
}

func (p *person) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.mu.Lock()
		p.asked = append(p.asked, r.Params.Message)
		answer := p.answer
		p.mu.Unlock()
		return answer(r.Params.Message), nil
	}}
}

func (p *person) answers(f func(string) *mcp.ElicitResult) (asked []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, p.asked, p.answer = p.asked, nil, f
	return asked
}

// versions are the two ways in which a server asks: by a request of its own, and
// by ending the client's.
var versions = []string{"2025-11-25", "2026-07-28"}

// TestInputAsksTheUser, whatever the transport and the version of the protocol.
func TestInputAsksTheUser(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{InputTimeout: time.Minute})
	o.SharedSessions = true // the tests name them
	h := httptest.NewServer(mcpserver.Handler(serverOf(t, o), "sesame", o))
	t.Cleanup(h.Close)
	for _, version := range versions {
		for transport, connect := range map[string]func(*testing.T, *mcp.ClientOptions) *mcp.ClientSession{
			"memory": func(t *testing.T, co *mcp.ClientOptions) *mcp.ClientSession { return clientOf(t, o, co, version) },
			"http":   func(t *testing.T, co *mcp.ClientOptions) *mcp.ClientSession { return httpClient(t, h.URL, co, version) },
		} {
			t.Run(version+" "+transport, func(t *testing.T) { testInput(t, version, connect) })
		}
	}
}

func testInput(t *testing.T, version string, connect func(*testing.T, *mcp.ClientOptions) *mcp.ClientSession) {
	t.Parallel()
	p, session := &person{}, t.Name()
	in := func(code ...string) map[string]any {
		args := cells(code...)
		args["session"] = session
		return args
	}
	var shown progress
	co := p.options()
	co.ProgressNotificationHandler = shown.take
	cs := connect(t, co)
	require.Equal(t, version, cs.InitializeResult().ProtocolVersion)

	p.answers(func(m string) *mcp.ElicitResult { return says(strings.TrimSuffix(m, "? ")) })
	require.Equal(t, "Ann? Bob? \n'ANNBOB'", text(call(t, cs, "python", in("(input('Ann? ') + input('Bob? ')).upper()"))))
	require.Equal(t, []string{"Ann? ", "Bob? "}, p.answers(func(string) *mcp.ElicitResult { return says("") }))
	require.Equal(t, "''", text(call(t, cs, "python", in("input()"))), "an empty line is an answer")
	require.Equal(t, []string{"The Python code asks for a line of input."}, p.answers(nil))

	for _, action := range []string{"decline", "cancel"} {
		p.answers(func(string) *mcp.ElicitResult { return &mcp.ElicitResult{Action: action} })
		r := call(t, cs, "python", in("input()"))
		require.True(t, r.IsError)
		require.Contains(t, text(r), "EOFError")
	}

	p.answers(nil) // nobody may be asked
	r := call(t, cs, "python", in("import getpass\ngetpass.getpass('Password: ')"))
	require.True(t, r.IsError)
	require.Contains(t, text(r), "EOFError")
	require.Contains(t, r.Content[1].(*mcp.TextContent).Text, "getpass was not passed on to the user")
	require.Empty(t, p.answers(nil))

	p.answers(func(string) *mcp.ElicitResult { return says("yes") })
	params := &mcp.CallToolParams{Name: "python", Arguments: in("import time\nprint('before', flush=True)\nx = input()\nprint('after', flush=True)\ntime.sleep(.3)\nx")}
	params.SetProgressToken("token")
	r, err := cs.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Contains(t, text(r), "'yes'")
	require.Eventually(t, func() bool { return shown.seen("before") && shown.seen("after") }, 3*time.Minute, 10*time.Millisecond, "output on both sides of the question")

	cannot := connect(t, nil)
	r = call(t, cannot, "python", in("input()"))
	require.True(t, r.IsError, "a client that cannot be asked")
	require.Contains(t, text(r), "stdin")
}

// TestInputWaitsOnlySoLong: a user who does not answer keeps no session.
func TestInputWaitsOnlySoLong(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{InputTimeout: 300 * time.Millisecond})
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p, over := &person{}, make(chan struct{})
			p.answers(func(string) *mcp.ElicitResult { <-over; return says("late") })
			cs := clientOf(t, o, p.options(), version)
			args := cells("try: input()\nexcept TimeoutError as e: timed = str(e)\ntimed")
			args["session"] = version
			done := make(chan *mcp.CallToolResult, 1)
			go func() {
				if r, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "python", Arguments: args}); err == nil {
					done <- r
				}
			}()
			other := client(t, o, nil)
			look := cells("timed")
			look["session"] = version
			require.Eventually(t, func() bool { return len(p.seen()) > 0 }, 3*time.Minute, 10*time.Millisecond)
			require.Contains(t, text(call(t, other, "python", look)), "no answer came within 0.3 seconds", "the next call is served")
			close(over)
			require.Contains(t, text(<-done), "no answer came within 0.3 seconds", "the result waits for its client")
		})
	}
}

func (p *person) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// TestRounds of a client that makes them itself: what it sends wrong is told, and
// each state brings a call back once.
func TestRounds(t *testing.T) {
	t.Parallel()
	p := &person{}
	co := p.options()
	co.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	o := optionsOf(t, coppice.Options{})
	cs := client(t, o, co)
	var arguments any = cells("a = input('a? ')\nb = input('b? ')\na + b")
	round := func(tool, state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments, RequestState: state, InputResponses: answers})
		require.NoError(t, err)
		return r
	}
	answer := func(r *mcp.CallToolResult, value string) mcp.InputResponseMap {
		require.True(t, r.NeedsInput())
		require.Len(t, r.InputRequests, 1)
		all := mcp.InputResponseMap{}
		for id := range r.InputRequests {
			all[id] = says(value)
		}
		return all
	}
	first := round("python", "", nil)
	again := round("python", first.RequestState, nil)
	require.Equal(t, first.InputRequests, again.InputRequests, "a question without an answer stays")
	require.NotEqual(t, first.RequestState, again.RequestState)
	for state, tool := range map[string]string{first.RequestState: "python", again.RequestState: "bash", "none": "python"} {
		r := round(tool, state, answer(first, "forged"))
		require.True(t, r.IsError)
		require.Contains(t, text(r), tool+": requestState: no call waits for this answer")
	}
	second := round("python", again.RequestState, answer(again, "x"))
	last := round("python", second.RequestState, answer(second, "y"))
	require.Contains(t, text(last), "'xy'")
	b, err := json.Marshal(last.StructuredContent)
	require.NoError(t, err)
	require.Contains(t, string(b), `"outcome":"ok"`)

	// Threads that ask at once are asked for in one round, or in two.
	arguments = cells("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as pool: got = sorted(pool.map(input, ['a', 'b']))\ngot")
	r := round("python", "", nil)
	for range 3 {
		if !r.NeedsInput() {
			break
		}
		all := mcp.InputResponseMap{}
		for id, q := range r.InputRequests {
			all[id] = says(q.(*mcp.ElicitParams).Message)
		}
		r = round("python", r.RequestState, all)
	}
	require.Contains(t, text(r), "['a', 'b']")

	arguments = cells("input()") // nobody comes back: the server ends it
	require.True(t, round("python", "", nil).NeedsInput())
}
