package jupyterapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
)

// TestKeptOnDisk: a kernel whose session was kept on disk is the same as before, for its
// clients, and says what is not.
func TestKeptOnDisk(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *coppice.Options) { o.Hibernate = hibernate.Lossy })
	id := s.start()
	c := s.dial(id)
	sleeps := func() {
		t.Helper()
		_, err := s.host.Session(id, coppice.In(s.cwd)).Hibernate(t.Context())
		require.NoError(t, err)
		var k object
		s.rest("GET", "/api/kernels/"+id, "", http.StatusOK, &k)
		require.Equal(t, "idle", k["execution_state"], "the next request finds it as it was")
	}
	before := c.execute("x = 41")[0].Header.Session
	same := func(all []received, count int) {
		t.Helper()
		for _, m := range all {
			require.Equal(t, before, m.Header.Session)
			require.False(t, isStatus(m, "restarting") || isStatus(m, "starting"), kinds(all))
		}
		require.InDelta(t, count, of(t, all, "execute_reply")["execution_count"], 0)
	}
	sleeps()
	all := c.execute("x + 1")
	same(all, 2)
	require.Equal(t, object{"text/plain": "42"}, of(t, all, "execute_result")["data"])
	require.Empty(t, text(all), "all of it is there")

	c.execute("import socket\nsock = socket.socket()")
	sleeps()
	c.until(idle(c.send("shell", "kernel_info_request", object{})))
	require.Empty(t, text(c.execute("0", "silent", true)), "no one would see it")
	all = c.execute("x")
	same(all, 4)
	require.Contains(t, text(all), "lost: sock (socket.socket: ")
	all = c.execute("sock")
	same(all, 5)
	require.Equal(t, "NameError", of(t, all, "execute_reply")["ename"])
	require.Empty(t, text(all), "it is said once")
}

// TestMadeRoom: a kernel that was ended for want of room, and not kept, begins anew.
func TestMadeRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *coppice.Options) { o.MaxSessions = 1 })
	id := s.start()
	c := s.dial(id)
	before := c.execute("x = 41")[0].Header.Session
	s.start()
	var k object
	s.rest("GET", "/api/kernels/"+id, "", http.StatusOK, &k)
	require.Equal(t, "dead", k["execution_state"])
	all := c.execute("x")
	require.True(t, isStatus(all[0], "restarting"), kinds(all))
	require.NotEqual(t, before, all[len(all)-1].Header.Session)
	reply := of(t, all, "execute_reply")
	require.Equal(t, "NameError", reply["ename"])
	require.InDelta(t, 1, reply["execution_count"], 0)
}
