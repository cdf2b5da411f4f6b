package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
)

// served serves over HTTP and returns the address.
func served(t *testing.T, o mcpserver.Options) string {
	t.Helper()
	h := httptest.NewServer(mcpserver.Handler(serverOf(t, o), "sesame", o))
	t.Cleanup(h.Close)
	return h.URL
}

// in adds the session to the arguments of a call.
func in(session string, args map[string]any) map[string]any {
	args = maps.Clone(args)
	if args == nil {
		args = map[string]any{}
	}
	if session != "" {
		args["session"] = session
	}
	return args
}

// sessionOf is the session that a result names.
func sessionOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	require.False(t, r.IsError, text(r))
	return r.StructuredContent.(map[string]any)["session"].(string)
}

// handleOf is the session that a result tells a model to pass on; "": none.
func handleOf(r *mcp.CallToolResult) string {
	last, _ := r.Content[len(r.Content)-1].(*mcp.TextContent)
	if found := regexp.MustCompile(`pass session: "(mcp-[a-z2-7]{32})"`).FindStringSubmatch(last.Text); found != nil {
		return found[1]
	}
	return ""
}

// listed are the names that sessions_list shows.
func listed(t *testing.T, cs *mcp.ClientSession, session string) []string {
	t.Helper()
	r := call(t, cs, "sessions_list", in(session, nil))
	require.False(t, r.IsError, text(r))
	var names []string
	for _, s := range r.StructuredContent.(map[string]any)["sessions"].([]any) {
		names = append(names, s.(map[string]any)["session"].(string))
	}
	return names
}

// mixed are pairs of versions that two clients may speak, the first twice too.
func mixed() [][2]string {
	pairs := [][2]string{{"2026-07-28", "2025-11-25"}}
	for _, version := range mcp.SupportedProtocolVersions() {
		pairs = append(pairs, [2]string{version, version})
	}
	return pairs
}

// TestTwoClientsShareNothing: neither of two clients sees a name that the other has
// set, whatever each of them speaks and names; each keeps its own.
func TestTwoClientsShareNothing(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}, mcp.SupportedProtocolVersions())
	o := optionsOf(t, coppice.Options{MaxSessions: 100})
	o.Tools.Notebooks = true
	url := served(t, o)
	for _, versions := range mixed() {
		t.Run(strings.Join(versions[:], " "), func(t *testing.T) {
			t.Parallel()
			var clients [2]*mcp.ClientSession
			var going [2]string // what each passes on
			names := [2]string{"a", "b"}
			for i, version := range versions {
				clients[i] = httpClient(t, url, nil, version)
				require.Equal(t, version, clients[i].InitializeResult().ProtocolVersion)
			}
			run := func(i int, session, code string) *mcp.CallToolResult {
				return call(t, clients[i], "python", in(session, cells(code)))
			}
			for i := range clients {
				r := run(i, "", fmt.Sprintf("mine_%s = 1", names[i]))
				require.False(t, r.IsError, text(r))
				going[i] = handleOf(r)
				require.Equal(t, versions[i] >= "2026-07-28", going[i] != "", "%v", r.Content)
				if going[i] != "" {
					require.Equal(t, going[i], sessionOf(t, r))
				} else {
					require.Equal(t, "default", sessionOf(t, r))
				}
			}
			seen := "sorted(n for n in globals() if n.startswith('mine_'))"
			for i, cs := range clients {
				want := fmt.Sprintf("['mine_%s']", names[i])
				r := run(i, going[i], seen)
				require.Equal(t, want, text(r), "its own, and no other")
				require.Empty(t, handleOf(r))
				require.Equal(t, "kept", r.StructuredContent.(map[string]any)["state"])

				path := fmt.Sprintf("%s-%d.ipynb", strings.Join(versions[:], "-"), i)
				r = call(t, cs, "notebook_edit", map[string]any{"path": path, "edits": []any{map[string]any{"action": "insert", "source": "mine_nb = 1\n" + seen}}})
				require.False(t, r.IsError, text(r))
				r = call(t, cs, "notebook_run", in(going[i], map[string]any{"path": path}))
				require.Contains(t, text(r), fmt.Sprintf("['mine_%s', 'mine_nb']", names[i]), "notebooks run in it")
				require.Equal(t, sessionOf(t, run(i, going[i], "0")), sessionOf(t, r))

				require.Equal(t, []string{sessionOf(t, r)}, listed(t, cs, going[i]), "it is told of its own alone")
				require.Equal(t, "hi", text(call(t, cs, "bash", in(going[i], map[string]any{"command": "echo hi"}))))
			}

			for i := range clients { // what the other may have named
				other := 1 - i
				for _, session := range []string{"analysis", "default", going[other], sessionOf(t, run(other, going[other], "0"))} {
					if session == "" || versions[i] == versions[other] && session == "default" {
						continue
					}
					if session == going[other] && versions[i] >= "2026-07-28" {
						continue // a handle is a capability: who was given it may use it
					}
					run(other, session, fmt.Sprintf("of_%d = 1", other))
					require.NotEqual(t, "1", text(run(i, session, fmt.Sprintf("of_%d", other))), "%s by way of %q", versions[i], session)
				}
			}

			for i, cs := range clients {
				require.False(t, call(t, cs, "sessions_reset", in(going[i], nil)).IsError)
				require.Regexp(t, `(?s)^\[\]\n.*the session was reset`, text(run(i, going[i], seen)))
				require.False(t, call(t, cs, "sessions_close", in(going[i], nil)).IsError)
			}
		})
	}
}

// TestNamesOfAClient with a session of the protocol are its own.
func TestNamesOfAClient(t *testing.T) {
	t.Parallel()
	url := served(t, optionsOf(t, coppice.Options{MaxSessions: 100}))
	a, b := httpClient(t, url, nil, "2025-11-25"), httpClient(t, url, nil, "2025-11-25")
	require.Equal(t, "analysis", sessionOf(t, call(t, a, "python", in("analysis", cells("x = 1")))))
	require.True(t, call(t, b, "python", in("analysis", cells("x"))).IsError)
	require.Equal(t, "1", text(call(t, a, "python", in("analysis", cells("x")))))
	require.True(t, call(t, a, "python", cells("x")).IsError, "nor is it the one without a name")
	require.Equal(t, []string{"analysis", "default"}, slices.Sorted(slices.Values(listed(t, a, ""))))
	require.Equal(t, []string{"analysis"}, listed(t, b, ""))
	require.Equal(t, []string{"analysis"}, listed(t, a, "analysis"))
}

// TestAStatelessClientNamesNothing that the server has not made, in any spelling; and
// what is done to a session needs one.
func TestAStatelessClientNamesNothing(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{MaxSessions: 100})
	o.Tools.Notebooks = true
	url := served(t, o)
	cs := httpClient(t, url, nil, "2026-07-28")
	first := call(t, cs, "python", cells("x = 1"))
	handle := handleOf(first)
	second := handleOf(call(t, cs, "python", cells("'x' in globals()")))
	require.NotEmpty(t, second)
	require.NotEqual(t, handle, second, "each call without a handle has a session of its own")

	flipped := []byte(handle)
	flipped[len(flipped)-1] ^= 'a' ^ 'b'
	for _, name := range []string{"analysis", "default", "mcp-", "mcp-x", string(flipped), handle + "a", handle[:len(handle)-8], strings.ToUpper(handle), handle + "/x", " " + handle, handle + "\n"} {
		for tool, args := range map[string]map[string]any{"python": cells("x"), "bash": {"command": "true"}, "notebook_run": {"path": "a.ipynb"}, "sessions_reset": nil, "sessions_list": nil} {
			r := call(t, cs, tool, in(name, args))
			require.True(t, r.IsError, "%s %q", tool, name)
			require.Contains(t, text(r), tool+": session: ")
			require.Contains(t, text(r), "is no session that this server has given you")
		}
	}
	for _, key := range []string{"Session", "SESSION", "\u017fession"} {
		r := call(t, cs, "python", map[string]any{key: "analysis", "cells": cells("x")["cells"]})
		require.True(t, r.IsError, key)
		require.Contains(t, text(r), "is no session that this server has given you", key)
	}
	r := call(t, cs, "python", map[string]any{"session": 7, "cells": cells("x")["cells"]})
	require.Contains(t, text(r), "python: session: is a JSON number; it must be a string")
	for _, tool := range []string{"sessions_interrupt", "sessions_reset", "sessions_close", "sessions_list"} {
		r := call(t, cs, tool, nil)
		require.True(t, r.IsError, tool)
		require.Contains(t, text(r), tool+": session: is missing")
	}
	require.Equal(t, "1", text(call(t, cs, "python", in(handle, cells("x")))))

	another := options(t)
	stranger := httpClient(t, served(t, another), nil, "2026-07-28")
	require.True(t, call(t, stranger, "python", in(handle, cells("x"))).IsError, "another server made it")
	r = call(t, stranger, "python", map[string]any{})
	require.True(t, r.IsError)
	require.Empty(t, handleOf(r), "nothing was begun")
}

// TestToolsSayHowToGoOn to who has to, and to nobody else; and a session that a round
// of questions has begun is told at its end.
func TestToolsSayHowToGoOn(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{MaxSessions: 100})
	o.Tools.Style = agent.StyleREPL
	url := served(t, o)
	p := &person{}
	p.answers(func(string) *mcp.ElicitResult { return says("Ann") })
	for version, told := range map[string]bool{"2025-11-25": false, "2026-07-28": true} {
		cs := httpClient(t, url, p.options(), version)
		for tool, err := range cs.Tools(t.Context(), nil) {
			require.NoError(t, err)
			session, err := json.Marshal(tool.InputSchema)
			require.NoError(t, err)
			switch tool.Name {
			case "execute_code":
				require.Equal(t, told, strings.Contains(tool.Description, "Pass that name as session"), tool.Description)
				require.Equal(t, told, strings.Contains(string(session), "a new one, with no variables, if it is left out"))
			case "reset_repl", "sessions_close":
				require.Equal(t, told, strings.Contains(string(session), "as an earlier result has named it"), "%s", session)
			default:
				require.NotContains(t, tool.Description, "Pass that name as session", tool.Name)
			}
		}
		r := call(t, cs, "execute_code", map[string]any{"code": "name = input('? ')"})
		require.Equal(t, told, handleOf(r) != "")
		require.Equal(t, "'Ann'", text(call(t, cs, "execute_code", in(handleOf(r), map[string]any{"code": "name"}))))
		require.False(t, call(t, cs, "reset_repl", in(handleOf(r), nil)).IsError)
		require.True(t, call(t, cs, "execute_code", in(handleOf(r), map[string]any{"code": "name"})).IsError)
		require.Equal(t, told, call(t, cs, "reset_repl", nil).IsError, "there is nothing to reset without a handle")
	}
}

// TestSharedSessions are those that clients name, where the server allows it; what
// has no name is nobody else's all the same.
func TestSharedSessions(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{MaxSessions: 100})
	o.SharedSessions = true
	url := served(t, o)
	old, recent := httpClient(t, url, nil, "2025-11-25"), httpClient(t, url, nil, "2026-07-28")
	call(t, old, "python", in("team", cells("x = 1")))
	require.Equal(t, "1", text(call(t, recent, "python", in("team", cells("x")))))
	call(t, old, "python", cells("x = 2"))
	r := call(t, recent, "python", cells("x = 3"))
	require.Equal(t, "2", text(call(t, old, "python", cells("x"))))
	require.Equal(t, "2", text(call(t, old, "python", in("default", cells("x")))))
	require.Equal(t, "3", text(call(t, recent, "python", in(handleOf(r), cells("x")))))
	require.True(t, call(t, recent, "python", in("default", cells("x"))).IsError)
	require.Equal(t, []string{"default", "team"}, slices.Sorted(slices.Values(listed(t, old, ""))))
	require.Equal(t, []string{"team"}, listed(t, recent, ""))
	for _, cs := range []*mcp.ClientSession{old, recent} {
		require.NotEqual(t, "3", text(call(t, cs, "python", in(strings.ToUpper(handleOf(r)), cells("x")))))
	}
}

// names are the sessions of a host.
func names(t *testing.T, h *coppice.Host) []string {
	t.Helper()
	tree, err := h.Snapshot(t.Context())
	require.NoError(t, err)
	var all []string
	for _, gate := range tree.Children {
		for _, n := range gate.Children {
			if n.Kind == "kernel" {
				all = append(all, n.Name)
			}
		}
	}
	return all
}

// TestLeftoversEndFirst: calls whose sessions nobody goes on with take no place from
// sessions that are worked with, and those of a connection end with it. No name in
// the host is one that a client can use.
func TestLeftoversEndFirst(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{MaxSessions: 6})
	o.MaxLeftover = 2
	url := served(t, o)
	cs := httpClient(t, url, nil, "2026-07-28")
	worked := handleOf(call(t, cs, "python", cells("x = 'worked'")))
	require.Equal(t, "'worked'", text(call(t, cs, "python", in(worked, cells("x")))))
	var last [3]string
	for i := range 12 {
		last[i%3] = handleOf(call(t, cs, "python", cells(fmt.Sprintf("x = %d", i))))
		require.NotEmpty(t, last[i%3])
	}
	require.Eventually(t, func() bool { return len(names(t, o.Host)) == 3 }, patience, tick)
	require.Equal(t, "'worked'", text(call(t, cs, "python", in(worked, cells("x")))))
	require.Equal(t, "11", text(call(t, cs, "python", in(last[2], cells("x")))), "the newest may be gone on with")
	r := call(t, cs, "python", in(last[0], cells("x")))
	require.True(t, r.IsError)
	require.Equal(t, "fresh", r.StructuredContent.(map[string]any)["state"], "the oldest are gone")
	require.Contains(t, r.Content[len(r.Content)-1].(*mcp.TextContent).Text, "This session had ended", "and say so")
	require.Len(t, call(t, cs, "python", in(last[0], cells("0"))).Content, 1, "once")

	ctx, cancel := context.WithCancel(t.Context())
	began := &progress{}
	leaving := httpClient(t, url, &mcp.ClientOptions{ProgressNotificationHandler: began.take}, "2026-07-28")
	params := &mcp.CallToolParams{Name: "python", Arguments: cells("print('begun', flush=True)\nimport time; time.sleep(300)")}
	params.SetProgressToken("token")
	before := names(t, o.Host)
	done := make(chan error, 1)
	go func() {
		_, err := leaving.CallTool(ctx, params)
		done <- err
	}()
	require.Eventually(t, func() bool { return began.seen("begun") }, patience, tick)
	require.Len(t, names(t, o.Host), len(before)+1)
	cancel()
	require.Error(t, <-done)
	require.Eventually(t, func() bool { return len(names(t, o.Host)) == len(before) }, patience, tick, "nobody heard its name")

	old := httpClient(t, url, nil, "2025-11-25")
	gone := httpClient(t, url, nil, "2025-11-25")
	call(t, gone, "python", cells("x = 1"))
	require.NoError(t, gone.Close())
	call(t, old, "python", cells("x = 1"))
	require.Eventually(t, func() bool { return len(names(t, o.Host)) == len(before)+1 }, patience, tick, "that of the connection that is gone has ended")
	for _, name := range names(t, o.Host) {
		require.NotContains(t, name, worked)
		require.NotContains(t, name, old.ID())
	}
}
