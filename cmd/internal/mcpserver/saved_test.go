package mcpserver_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// onDisk are the names that checkpoints have in the host.
func onDisk(t *testing.T, h *coppice.Host) []string {
	t.Helper()
	list, err := h.SavedCheckpoints(t.Context())
	require.NoError(t, err)
	names := make([]string, 0, len(list))
	for _, one := range list {
		names = append(names, one.Key.Name)
	}
	return names
}

// mine are the checkpoints that a client is told of.
func mine(t *testing.T, cs *mcp.ClientSession, session string) []string {
	t.Helper()
	r := call(t, cs, "sessions_saved", in(session, nil))
	require.False(t, r.IsError, text(r))
	names := []string{}
	for _, one := range r.StructuredContent.(map[string]any)["checkpoints"].([]any) {
		names = append(names, one.(map[string]any)["name"].(string))
	}
	return names
}

// done requires that a call succeeds, and returns what it says.
func done(t *testing.T, r *mcp.CallToolResult) map[string]any {
	t.Helper()
	require.False(t, r.IsError, text(r))
	return r.StructuredContent.(map[string]any)
}

// TestSaved: a model saves a session on disk and has it and another one go on from there, in a
// later server too; what has an owner in the host is none of its own.
func TestSaved(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{Hibernate: hibernate.Lossless, MaxSavedCheckpoints: 3})
	cs := client(t, o, nil)
	run := func(cs *mcp.ClientSession, session, code string) *mcp.CallToolResult {
		t.Helper()
		return call(t, cs, "python", in(session, cells(code)))
	}
	save := func(session, name string, more map[string]any) *mcp.CallToolResult {
		t.Helper()
		args := in(session, more)
		args["name"] = name
		return call(t, cs, "sessions_save", args)
	}
	done(t, run(cs, "a", "x = 1; s = __import__('socket').socket()"))
	r := save("a", "first", nil)
	require.True(t, r.IsError)
	require.Contains(t, text(r), `sessions_save: the checkpoint "first" was not made: it would lose s (socket`)
	told := done(t, save("a", "first", map[string]any{"lossy": true}))
	require.Equal(t, []any{"x"}, told["kept"])
	require.Equal(t, "s", told["lost"].([]any)[0].(map[string]any)["name"])
	require.Contains(t, text(save("a", "first", map[string]any{"lossy": true})), "replace it")
	done(t, run(cs, "a", "s.close(); del s; x = 2"))
	done(t, save("a", "first", map[string]any{"replace": true}))
	done(t, run(cs, "a", "x = 3"))
	for _, name := range []string{"", "mcp-mine", "a/b"} {
		require.True(t, save("a", name, nil).IsError, name)
	}

	host := o.Host
	_, err := host.Session("owned", coppice.In(o.Cwd)).Execute(t.Context(), coppice.Request{Owner: "someone", Cells: []messages.Cell{{Code: "secret = 1"}}})
	require.NoError(t, err)
	_, err = host.Session("owned", coppice.In(o.Cwd)).SaveCheckpoint(t.Context(), "theirs", coppice.SaveOptions{Owner: "someone"})
	require.NoError(t, err)
	require.True(t, save("a", "theirs", map[string]any{"replace": true}).IsError)

	later := client(t, o, nil)
	require.Equal(t, []string{"first"}, mine(t, later, ""))
	for _, session := range []string{"a", "b"} {
		told = done(t, call(t, later, "sessions_restore", in(session, map[string]any{"name": "first"})))
		require.Equal(t, session, told["session"])
		require.Equal(t, []any{"x"}, told["kept"])
		r = run(later, session, "x")
		require.Contains(t, text(r), "2")
		require.Equal(t, "restored", done(t, r)["state"])
	}
	for _, tool := range []string{"sessions_restore", "sessions_drop"} {
		require.Contains(t, text(call(t, later, tool, in("b", map[string]any{"name": "theirs"}))), "belongs to another owner", tool)
		require.Contains(t, text(call(t, later, tool, in("b", map[string]any{"name": "none"}))), "there is none", tool)
	}
	done(t, save("a", "second", nil))
	require.Contains(t, text(save("a", "third", nil)), "there are 3 checkpoints, as many as this host keeps")
	done(t, call(t, later, "sessions_drop", map[string]any{"name": "second"}))
	require.Equal(t, []string{"first"}, mine(t, later, ""))
	require.Equal(t, []string{"first", "theirs"}, onDisk(t, host))
}

// TestSavedIsNobodyElses: whatever two clients speak, neither lists, restores, replaces or drops
// what the other has saved; and none of it is left when the server has ended.
func TestSavedIsNobodyElses(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{MaxSessions: 100, Hibernate: hibernate.Lossless})
	t.Cleanup(func() {
		require.Empty(t, onDisk(t, o.Host)) // the server has ended by then
		asleep, err := o.Host.Hibernated(t.Context())
		require.NoError(t, err)
		require.Empty(t, asleep)
	})
	url := served(t, o)
	for _, versions := range [][2]string{{"2025-11-25", "2025-11-25"}, {"2026-07-28", "2026-07-28"}, {"2026-07-28", "2025-11-25"}} {
		var clients [2]*mcp.ClientSession
		var going [2]string
		for i, version := range versions {
			clients[i] = httpClient(t, url, nil, version)
			r := call(t, clients[i], "python", cells(fmt.Sprintf("whose = %d", i)))
			done(t, r)
			going[i] = handleOf(r)
			done(t, call(t, clients[i], "sessions_save", in(going[i], map[string]any{"name": "same"})))
		}
		for i, cs := range clients {
			require.Equal(t, []string{"same"}, mine(t, cs, going[i]))
			done(t, call(t, cs, "python", in(going[i], cells("whose = 'changed'"))))
			for _, name := range onDisk(t, o.Host) { // the names that they have in the host are of no use
				for _, tool := range []string{"sessions_restore", "sessions_drop", "sessions_save"} {
					require.True(t, call(t, cs, tool, in(going[i], map[string]any{"name": name})).IsError, "%s %s", tool, name)
				}
			}
			args := map[string]any{"name": "same", "from": going[i]}
			session := ""
			if going[i] == "" {
				args, session = map[string]any{"name": "same"}, "another"
			}
			told := done(t, call(t, cs, "sessions_restore", in(session, args)))
			restored := told["session"].(string)
			require.NotEqual(t, going[i], restored)
			require.Equal(t, fmt.Sprint(i), text(call(t, cs, "python", in(restored, cells("whose"))))[:1])
		}
		if going[0] != "" {
			r := call(t, clients[0], "sessions_restore", map[string]any{"name": "same"})
			require.Contains(t, text(r), "is missing; pass the session that a result has named")
			r = call(t, clients[0], "sessions_restore", map[string]any{"name": "same", "from": "default"})
			require.Contains(t, text(r), "is no session that this server has given you")
		}
	}
	// One client does not take the place of all.
	cs := httpClient(t, url, nil, "2025-11-25")
	done(t, call(t, cs, "python", cells("x = 1")))
	for i := range 24 {
		done(t, call(t, cs, "python", in(fmt.Sprint("s", i), cells("x = 1"))))
	}
	var many sync.WaitGroup
	for i := range 24 { // at once, each of another session
		many.Go(func() {
			_, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "sessions_save", Arguments: in(fmt.Sprint("s", i), map[string]any{"name": fmt.Sprint("at-once-", i)})})
		})
	}
	many.Wait()
	there := mine(t, cs, "")
	require.NotEmpty(t, there)
	require.LessOrEqual(t, len(there), 16)
	for _, name := range there {
		done(t, call(t, cs, "sessions_drop", map[string]any{"name": name}))
	}
	for i := range 16 {
		done(t, call(t, cs, "sessions_save", map[string]any{"name": fmt.Sprint(i)}))
	}
	require.Contains(t, text(call(t, cs, "sessions_save", map[string]any{"name": "16"})), "there are 16 checkpoints, as many as you may have; drop one with sessions_drop")
	done(t, call(t, cs, "sessions_save", map[string]any{"name": "0", "replace": true}))
	// What a connection has saved ends with it, when the next call comes.
	before := len(onDisk(t, o.Host))
	require.NoError(t, cs.Close())
	other := httpClient(t, url, nil, "2025-11-25")
	require.Eventually(t, func() bool {
		done(t, call(t, other, "python", cells("1")))
		return len(onDisk(t, o.Host)) == before-16
	}, patience, tick)
	for _, name := range onDisk(t, o.Host) {
		require.True(t, strings.HasPrefix(name, "mcp-"), name)
	}
}
