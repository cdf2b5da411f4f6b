package jupyterapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// TestAConnectionIsReplaced by the next one of the same client, although nothing said that
// it is gone. Another client keeps its own.
func TestAConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := serve(t)
	kernel := s.start()
	stale, other := s.dialAs("mine", kernel), s.dialAs("other", kernel)
	id := stale.send("shell", "execute_request", object{"code": "input('name? ') + input('and? ')", "allow_stdin": true})
	isAsked := func(m received) bool { return m.Header.Type == "input_request" }
	stale.until(isAsked)

	c := s.dialAs("mine", kernel)
	_, _, err := stale.conn.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), "%v", err)
	c.until(isAsked)
	c.send("stdin", "input_reply", object{"value": "Ada"})
	require.Equal(t, "and? ", of(t, c.until(isAsked), "input_request")["prompt"])
	c.send("stdin", "input_reply", object{"value": "!"})
	all := c.until(idle(id))
	require.Equal(t, object{"text/plain": "'Ada!'"}, of(t, all, "execute_result")["data"])
	require.Equal(t, "ok", of(t, all, "execute_reply")["status"], "which goes to who asked, not to the connection")
	require.NotContains(t, kinds(other.until(idle(id))), "execute_reply")
}

// leaves waits until the kernel knows that its only client is gone.
func (s *server) leaves(c *socket, kernel string) {
	s.t.Helper()
	require.NoError(s.t, c.conn.Close())
	require.Eventually(s.t, func() bool {
		var k struct{ Connections int }
		s.rest("GET", "/api/kernels/"+kernel, "", 200, &k)
		return k.Connections == 0
	}, time.Minute, 10*time.Millisecond)
}

// gate runs code that waits until open is called, and then prints.
func gate(s *server, c *socket, code string) (id string, open func(kernel string)) {
	s.t.Helper()
	id = c.send("shell", "execute_request", object{"code": "import os, time\nprint('go', flush=True)\nwhile not os.path.exists('gate'): time.sleep(.01)\n" + code})
	c.until(func(m received) bool { return m.Header.Type == "stream" })
	return id, func(kernel string) {
		s.rest("PUT", "/api/contents/gate", `{"type": "file", "format": "text", "content": ""}`, 201, nil)
		require.Eventually(s.t, func() bool {
			var k object
			s.rest("GET", "/api/kernels/"+kernel, "", 200, &k)
			return k["execution_state"] == "idle"
		}, time.Minute, 10*time.Millisecond)
	}
}

// TestWhatIsSaidToNoOne is kept for the client that went last.
func TestWhatIsSaidToNoOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	kernel := s.start()
	c := s.dialAs("mine", kernel)
	id, open := gate(s, c, "print('in the dark')\n6 * 7")
	s.leaves(c, kernel)
	open(kernel)

	c = s.redial("mine", kernel)
	all := c.until(idle(id))
	require.Equal(t, "in the dark\n", text(all))
	require.Equal(t, object{"text/plain": "42"}, of(t, all, "execute_result")["data"])
	require.Equal(t, "ok", of(t, all, "execute_reply")["status"])
	require.Equal(t, []string{"status", "execute_input", "execute_reply", "status"}, kinds(c.execute("x = 1"))[1:], "after what the kernel does")

	s.leaves(c, kernel)
	other := s.redial("other", kernel)
	require.NotContains(t, kinds(other.execute("1")), "stream", "another client has nothing of it")
}

// TestMuchIsSaidToNoOne: the latest is kept, and the client is told that there was more.
func TestMuchIsSaidToNoOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	kernel := s.start()
	c := s.dialAs("mine", kernel)
	id, open := gate(s, c, "for i in range(200): print(('%06d' % i) * 10000)\nprint('the last')")
	s.leaves(c, kernel)
	open(kernel)

	c = s.redial("mine", kernel)
	kept := text(c.until(idle(id)))
	require.True(t, strings.HasSuffix(kept, "the last\n"))
	require.Greater(t, len(kept), 3<<20)
	require.Less(t, len(kept), 4<<20)
	told := c.next()
	require.Equal(t, "stream", told.Header.Type)
	require.Regexp(t, `^[0-9]+ messages came while you were not connected, and were not kept: 4 MiB are, the latest\n$`, told.Content["text"])
}
