package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// bearer sends the token, and hears which node has answered.
type bearer struct {
	mu   sync.Mutex
	node string // of the last answer to a call; guarded by mu
}

// RoundTrip implements [http.RoundTripper].
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && r.Method == http.MethodPost {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.node = resp.Header.Get("Coppice-Node")
	}
	return resp, err
}

// agent is a client over MCP.
type agent struct {
	*mcp.ClientSession
	t  *testing.T
	at *bearer
}

// agent connects one to a node, in a version of the protocol.
func (n *node) agent(version string) *agent {
	n.t.Helper()
	at := &bearer{}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := c.Connect(n.t.Context(), &mcp.StreamableClientTransport{Endpoint: n.url + "/mcp", HTTPClient: &http.Client{Transport: at}, DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = s.Close() })
	return &agent{s, n.t, at}
}

// told is what a call has come to: what was printed, the state, the session that is to be passed on,
// and the node that has answered.
type told struct{ text, state, session, node string }

// try runs code in a session, "" for that of calls without one.
func (a *agent) try(session, code string) (told, error) {
	arguments := map[string]any{"cells": []any{map[string]any{"code": code}}}
	if session != "" {
		arguments["session"] = session
	}
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: "python", Arguments: arguments})
	if err != nil {
		return told{}, err
	}
	what := told{text: strings.TrimSpace(r.Content[0].(*mcp.TextContent).Text)}
	if s, ran := r.StructuredContent.(map[string]any); ran {
		what.state, what.session = s["state"].(string), s["session"].(string)
	}
	a.at.mu.Lock()
	defer a.at.mu.Unlock()
	what.node = a.at.node
	return what, nil
}

// run is try that does not fail.
func (a *agent) run(session, code string) told {
	a.t.Helper()
	what, err := a.try(session, code)
	require.NoError(a.t, err)
	return what
}

// TestAgentsOverMCP are served by the fleet as by one server: a session that a stateless call has
// begun is gone on with at its node, whichever is asked, and begins anew at another one when that is
// dead; a connection is at its node, and so is what was kept of long output.
func TestAgentsOverMCP(t *testing.T) {
	t.Parallel()
	fleet := newNodes(t).keeps()
	kept := fleet.more()
	fleet.more = func() []string { return append([]string{"--mcp", "--fleet-placement", "spread"}, kept...) }
	a, b := fleet.node("a"), fleet.node("b")
	front := fleet.node("front", "--fleet-front")
	byFront, byA := front.agent("2026-07-28"), a.agent("2026-07-28")

	at := map[string]string{} // the node of each session
	var handles []string
	for len(at) < 4 || !both(at) {
		r := byFront.run("", fmt.Sprintf("n = %d", len(handles)))
		require.Equal(t, "fresh", r.state)
		handles, at[r.session] = append(handles, r.session), r.node
		require.Less(t, len(handles), 40, "they begin at both: %v", at)
	}
	for i, handle := range handles {
		for _, c := range []*agent{byA, byFront} {
			require.Equal(t, told{fmt.Sprint(i), "kept", handle, at[handle]}, c.run(handle, "n"))
		}
	}
	require.Contains(t, byFront.run("mcp-"+strings.Repeat("a", 32), "1").text, "is no session that this server has given you")

	// A long output is read by whoever has its name.
	r, err := byFront.CallTool(t.Context(), &mcp.CallToolParams{Name: "python", Arguments: map[string]any{"session": handles[0], "cells": []any{map[string]any{"code": `print("x" * 200_000)`}}}})
	require.NoError(t, err)
	uri := r.StructuredContent.(map[string]any)["artifact"].(string)
	for _, c := range []*agent{byA, byFront} {
		part, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "artifact_read", Arguments: map[string]any{"artifact": uri, "offset": 199_990, "bytes": 5}})
		require.NoError(t, err)
		require.Equal(t, "xxxxx", part.StructuredContent.(map[string]any)["text"])
	}

	// A connection is at one node, and its sessions are its own.
	one, two := front.agent("2025-11-25"), front.agent("2025-11-25")
	home := one.run("", "mine = 1").node
	for range 3 {
		require.Equal(t, told{"1", "kept", "default", home}, one.run("", "mine"))
	}
	other := two.run("", "mine")
	require.Equal(t, "fresh", other.state)
	require.Contains(t, other.text, "NameError")

	dies, lives := b, "a-"
	if strings.HasPrefix(at[handles[0]], "a-") {
		dies, lives = a, "b-"
	}
	dies.signal(syscall.SIGKILL)
	<-dies.gone
	var anew told
	require.Eventually(t, func() bool {
		anew, err = front.agent("2026-07-28").try(handles[0], "n")
		return err == nil
	}, patience, 10*time.Millisecond)
	require.Equal(t, []string{"fresh", handles[0]}, []string{anew.state, anew.session})
	require.Contains(t, anew.text, "NameError")
	require.True(t, strings.HasPrefix(anew.node, lives), anew.node)
}
