package jupyterapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHistory is that of a kernel's own code: of what was counted, over its restarts.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c := s.dial(id)
	c.execute("x = 1")
	c.execute("hidden = 1", "store_history", false)
	c.execute("hidden = 2", "silent", true)
	c.execute("x + 1")
	c.execute("1/0")
	s.rest("POST", "/api/kernels/"+id+"/restart", "", http.StatusOK, nil)
	c.execute("x = 1")
	for name, tc := range map[string]struct {
		ask  object
		want []any
	}{
		"all":             {object{"hist_access_type": "tail"}, []any{l(1, 1, "x = 1"), l(1, 2, "x + 1"), l(1, 3, "1/0"), l(2, 1, "x = 1")}},
		"the last":        {object{"hist_access_type": "tail", "n": 2}, []any{l(1, 3, "1/0"), l(2, 1, "x = 1")}},
		"none":            {object{"hist_access_type": "tail", "n": -1}, []any{}},
		"outputs":         {object{"hist_access_type": "range", "session": 1, "start": 1, "stop": 3, "output": true}, []any{l(1, 1, []any{"x = 1", nil}), l(1, 2, []any{"x + 1", "2"})}},
		"this process":    {object{"hist_access_type": "range", "session": 0, "start": 0}, []any{l(2, 1, "x = 1")}},
		"the one before":  {object{"hist_access_type": "range", "session": -1, "start": -1}, []any{l(1, 3, "1/0")}},
		"not its end":     {object{"hist_access_type": "range", "session": 1, "start": 1, "stop": -1}, []any{l(1, 1, "x = 1"), l(1, 2, "x + 1")}},
		"no such process": {object{"hist_access_type": "range", "session": 7, "start": 0}, []any{}},
		"a search":        {object{"hist_access_type": "search", "pattern": "x*"}, []any{l(1, 1, "x = 1"), l(1, 2, "x + 1"), l(2, 1, "x = 1")}},
		"each once":       {object{"hist_access_type": "search", "pattern": "x = ?", "unique": true}, []any{l(2, 1, "x = 1")}},
		"the newest":      {object{"hist_access_type": "search", "pattern": "", "n": 1}, []any{l(2, 1, "x = 1")}},
		"a set":           {object{"hist_access_type": "search", "pattern": "[0-9]/?"}, []any{l(1, 3, "1/0")}},
		"no set":          {object{"hist_access_type": "search", "pattern": "[x.(\xff"}, []any{}},
	} {
		got := of(t, c.until(idle(c.send("shell", "history_request", tc.ask))), "history_reply")
		require.Equal(t, object{"status": "ok", "history": tc.want}, got, name)
	}
}

// l is a line of a history.
func l(process, line float64, what any) []any { return []any{process, line, what} }

// TestHelp is shown apart from the output, and leaves the last value as it is.
func TestHelp(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	c.execute("41")
	all := c.execute("zip?")
	reply := of(t, all, "execute_reply")
	require.Equal(t, "ok", reply["status"])
	require.Equal(t, []string{"status", "execute_input", "execute_reply", "status"}, kinds(all))
	payload, _ := reply["payload"].([]any)
	require.Len(t, payload, 1)
	shown, _ := payload[0].(object)
	require.Equal(t, "page", shown["source"])
	data, _ := shown["data"].(object)
	require.Contains(t, data["text/plain"], "zip")
	all = c.execute(" ?nix")
	require.Equal(t, "Object `nix` not found.\n", text(all))
	require.Empty(t, of(t, all, "execute_reply")["payload"])
	c.until(idle(c.send("shell", "is_complete_request", object{"code": "1"})))
	require.Equal(t, object{"text/plain": "42"}, of(t, c.execute("_ + 1"), "execute_result")["data"])
}
