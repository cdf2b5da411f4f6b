package jupyterapi_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// TestExecute shows what code shows, in its order, between busy and idle.
func TestExecute(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c, other := s.dial(id), s.dial(id)

	all := c.execute("import sys\nprint('hello')\nx = 40\nx + 2")
	require.Equal(t, []string{"status", "execute_input", "stream", "execute_result", "execute_reply", "status"}, kinds(all))
	require.Equal(t, "hello\n", text(all))
	require.InDelta(t, 1, of(t, all, "execute_input")["execution_count"], 0)
	result := of(t, all, "execute_result")
	require.InDelta(t, 1, result["execution_count"], 0)
	require.Equal(t, object{"text/plain": "42"}, result["data"])
	reply := of(t, all, "execute_reply")
	require.Equal(t, "ok", reply["status"])
	require.InDelta(t, 1, reply["execution_count"], 0)

	// Another client sees all of it but the reply, with the same parents.
	seen := other.until(idle(all[0].Parent.ID))
	require.Equal(t, []string{"status", "execute_input", "stream", "execute_result", "status"}, kinds(seen))

	all = c.execute("1/0", "user_expressions", object{"a": "x"})
	require.Equal(t, []string{"status", "execute_input", "error", "execute_reply", "status"}, kinds(all))
	require.Equal(t, "ZeroDivisionError", of(t, all, "error")["ename"])
	require.NotEmpty(t, of(t, all, "error")["traceback"])
	require.Len(t, of(t, all, "error"), 3, "a notebook with anything else is not valid")
	reply = of(t, all, "execute_reply")
	require.Equal(t, "error", reply["status"])
	require.InDelta(t, 2, reply["execution_count"], 0)

	all = c.execute("print('quiet', file=sys.stderr)\n5", "silent", true)
	require.Equal(t, []string{"status", "stream", "execute_reply", "status"}, kinds(all))
	all = c.execute("y = 3", "store_history", false, "user_expressions", object{"sum": "x + y", "bad": "nix", "none": "None"})
	reply = of(t, all, "execute_reply")
	require.InDelta(t, 2, reply["execution_count"], 0)
	values, _ := reply["user_expressions"].(object)
	require.Equal(t, object{"status": "ok", "data": object{"text/plain": "43"}, "metadata": object{}}, values["sum"])
	require.Equal(t, object{"status": "ok", "data": object{"text/plain": "None"}, "metadata": object{}}, values["none"])
	bad, _ := values["bad"].(object)
	require.Equal(t, "NameError", bad["ename"])
	all = c.execute("6")
	require.InDelta(t, 3, of(t, all, "execute_reply")["execution_count"], 0)
}

// TestDisplays are shown, changed and cleared.
func TestDisplays(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	all := c.execute("h = display('a', display_id='d')\nh.update('b')\nfrom IPython.display import clear_output\nclear_output(wait=True)")
	require.Equal(t, []string{"status", "execute_input", "display_data", "update_display_data", "clear_output", "execute_reply", "status"}, kinds(all))
	require.Equal(t, object{"display_id": "d"}, of(t, all, "display_data")["transient"])
	require.Equal(t, object{"text/plain": "'b'"}, of(t, all, "update_display_data")["data"])
	require.Equal(t, object{"wait": true}, of(t, all, "clear_output"))
}

// TestResults are as IPython has them: a list is text, and JSON what wants to be it.
func TestResults(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	for code, want := range map[string]object{
		"[1, 2]":     {"text/plain": "[1, 2]"},
		"{'a': [1]}": {"text/plain": "{'a': [1]}"},
		"from IPython.display import JSON\nJSON([1])": {"text/plain": "<IPython.core.display.JSON object>", "application/json": []any{1.}},
	} {
		require.Equal(t, want, of(t, c.execute(code), "execute_result")["data"], code)
	}
	values, _ := of(t, c.execute("0", "user_expressions", object{"a": "[1]"}), "execute_reply")["user_expressions"].(object)
	require.Equal(t, object{"text/plain": "[1]"}, values["a"].(object)["data"]) //nolint:forcetypeassert // a test
}

// TestManyLines come in few messages, whole and in order.
func TestManyLines(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	all := c.execute("import sys\nfor i in range(20000): print(i, file=sys.stderr if i % 5000 == 4999 else sys.stdout)\ndisplay('end')")
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&want, i)
	}
	require.Equal(t, want.String(), text(all))
	require.Less(t, len(all), 10000)
	kind := kinds(all)
	require.Equal(t, []string{"display_data", "execute_reply", "status"}, kind[len(kind)-3:])
}

// TestInput asks the client that sent the code.
func TestInput(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	all := c.execute("input()")
	require.Equal(t, "error", of(t, all, "execute_reply")["status"], "no one can be asked")
	require.Equal(t, []string{"status", "execute_input", "error", "execute_reply", "status"}, kinds(all), "the error says it all")
	id := c.send("shell", "execute_request", object{"code": "input('name? ') + '!'", "allow_stdin": true})
	all = c.until(func(m received) bool { return m.Header.Type == "input_request" })
	ask := all[len(all)-1]
	require.Equal(t, "stdin", ask.Channel)
	require.Equal(t, id, ask.Parent.ID)
	require.Equal(t, object{"prompt": "name? ", "password": false}, ask.Content)
	c.send("stdin", "input_reply", object{"status": "ok", "value": "Ada"})
	all = c.until(idle(id))
	require.Equal(t, object{"text/plain": "'Ada!'"}, of(t, all, "execute_result")["data"])
}

// TestAQuestionIsAskedAgain of the client that sent the code, when it comes back.
func TestAQuestionIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	kernel := s.start()
	isAsked := func(m received) bool { return m.Header.Type == "input_request" }
	c := s.dialAs("mine", kernel)
	id := c.send("shell", "execute_request", object{"code": "input('name? ') + input('and? ')", "allow_stdin": true})
	c.until(isAsked)
	require.NoError(t, c.conn.Close())

	other, c := s.dialAs("other", kernel), s.dialAs("mine", kernel)
	asked := c.next()
	require.True(t, isAsked(asked), asked.Header.Type)
	require.Equal(t, id, asked.Parent.ID)
	require.Equal(t, object{"prompt": "name? ", "password": false}, asked.Content)
	c.send("stdin", "input_reply", object{"value": "Ada"})
	require.Equal(t, "and? ", of(t, c.until(isAsked), "input_request")["prompt"], "whose connection is not the one that sent the code")
	c.send("stdin", "input_reply", object{"value": "!"})
	require.Equal(t, object{"text/plain": "'Ada!'"}, of(t, c.until(idle(id)), "execute_result")["data"])
	require.NotContains(t, kinds(other.until(idle(id))), "input_request")
	again := s.dialAs("mine", kernel)
	require.NotContains(t, kinds(again.execute("1")), "input_request", "it was answered")
}

// TestInterrupt stops what runs. What waits behind it is not run, and answered.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c := s.dial(id)
	const forever = "import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)"
	for _, how := range []func(){
		func() { s.rest("POST", "/api/kernels/"+id+"/interrupt", "", http.StatusNoContent, nil) },
		func() { c.send("control", "interrupt_request", object{}) },
	} {
		run := c.send("shell", "execute_request", object{"code": forever})
		waits := c.send("shell", "execute_request", object{"code": "x = 1"})
		info := c.send("shell", "kernel_info_request", object{})
		c.until(func(m received) bool { return m.Header.Type == "stream" })
		var k object
		s.rest("GET", "/api/kernels/"+id, "", http.StatusOK, &k)
		require.Equal(t, "busy", k["execution_state"])
		how()
		all := c.until(idle(info))
		for _, m := range all {
			switch {
			case m.Header.Type == "execute_reply" && m.Parent.ID == run:
				require.Equal(t, "KeyboardInterrupt", m.Content["ename"])
			case m.Header.Type == "execute_reply":
				require.Equal(t, waits, m.Parent.ID)
				require.Equal(t, object{"status": "aborted"}, m.Content)
			}
		}
		require.Contains(t, kinds(all), "kernel_info_reply")
	}
	require.Equal(t, "NameError", of(t, c.execute("x"), "execute_reply")["ename"])
}

// TestDeath of a kernel is told to the code that it took with it, and to all clients.
func TestDeath(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	before := c.execute("x = 1")[0].Header.Session
	id := c.send("shell", "execute_request", object{"code": "import os; os._exit(7)"})
	all := c.until(idle(id))
	require.Equal(t, "KernelDied", of(t, all, "execute_reply")["ename"])
	all = append(all, c.until(func(m received) bool { return isStatus(m, "restarting") })...)
	require.Contains(t, kinds(all), "error")
	c.until(func(m received) bool { return isStatus(m, "idle") })
	all = c.execute("x")
	require.NotEqual(t, before, all[0].Header.Session, "another process has another name")
	require.Equal(t, "NameError", of(t, all, "execute_reply")["ename"])
}

// TestWhoConnectsIsTold what the kernel does: what was said before is for those who listened.
func TestWhoConnectsIsTold(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	first := s.dial(id)
	first.execute("x = 1")
	s.dial(id) // which waits for what it is told
	first.send("shell", "execute_request", object{"code": "print('it runs', flush=True)\nx = input()", "allow_stdin": true})
	first.until(func(m received) bool { return m.Header.Type == "input_request" })
	third := s.dial(id)
	first.send("stdin", "input_reply", object{"value": "2"})
	third.until(func(m received) bool { return isStatus(m, "idle") })
}

// TestRestart loses the variables and begins to count again, by either way.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c := s.dial(id)
	for _, how := range []func(){
		func() { s.rest("POST", "/api/kernels/"+id+"/restart", "", http.StatusOK, nil) },
		func() { c.send("control", "shutdown_request", object{"restart": true}) },
	} {
		before := c.execute("x = 1")[0].Header.Session
		how()
		for _, m := range c.until(func(m received) bool { return isStatus(m, "starting") }) {
			require.False(t, isStatus(m, "restarting"), "which is for a death")
		}
		all := c.execute("x")
		require.NotEqual(t, before, all[len(all)-1].Header.Session)
		reply := of(t, all, "execute_reply")
		require.Equal(t, "NameError", reply["ename"])
		require.InDelta(t, 1, reply["execution_count"], 0)
	}
	c.send("control", "shutdown_request", object{"restart": false})
	all := c.until(func(m received) bool { return isStatus(m, "dead") })
	require.Equal(t, object{"status": "ok", "restart": false}, of(t, all, "shutdown_reply"))
	s.rest("GET", "/api/kernels/"+id, "", http.StatusNotFound, nil)
}

// TestOtherRequests are answered, each between busy and idle.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	c.execute("äpfel = {'a': 1}")
	for _, tc := range []struct {
		channel, kind string
		content       object
		reply         string
		want          object
	}{
		{"shell", "complete_request", object{"code": "ö = äpf", "cursor_pos": 7}, "complete_reply", object{"status": "ok", "matches": []any{"äpfel"}, "cursor_start": 4., "cursor_end": 7.}},
		{"shell", "complete_request", object{"code": "zi"}, "complete_reply", object{"matches": []any{"zip"}}},
		{"shell", "complete_request", object{"code": "contin"}, "complete_reply", object{"matches": []any{"continue"}}},
		{"shell", "complete_request", object{"code": "str.isalph"}, "complete_reply", object{"matches": []any{"str.isalpha"}}},
		{"shell", "inspect_request", object{"code": "len", "cursor_pos": 3, "detail_level": 0}, "inspect_reply", object{"status": "ok", "found": true}},
		{"shell", "inspect_request", object{"code": "nix", "cursor_pos": 3}, "inspect_reply", object{"status": "ok", "found": false, "data": object{}}},
		{"shell", "is_complete_request", object{"code": "if 1:"}, "is_complete_reply", object{"status": "incomplete", "indent": "    "}},
		{"shell", "is_complete_request", object{"code": "'<\u2028ä😀>'"}, "is_complete_reply", object{"status": "complete"}},
		{"shell", "is_complete_request", object{"code": "%time 1"}, "is_complete_reply", object{"status": "complete"}},
		{"shell", "is_complete_request", object{"code": "len?"}, "is_complete_reply", object{"status": "complete"}},
		{"shell", "is_complete_request", object{"code": "1 1"}, "is_complete_reply", object{"status": "invalid"}},
		{"shell", "comm_info_request", object{}, "comm_info_reply", object{"status": "ok", "comms": object{}}},
		{"shell", "comm_open", object{"comm_id": "7", "target_name": "x", "data": object{}}, "comm_close", object{"comm_id": "7"}},
		{"shell", "kernel_info_request", object{}, "kernel_info_reply", object{"status": "ok", "protocol_version": "5.4", "implementation_version": "1.2.3"}},
		{"control", "kernel_info_request", object{}, "kernel_info_reply", object{"implementation": "coppice"}},
		{"control", "debug_request", object{"seq": 3, "command": "attach"}, "debug_reply", object{"success": false, "request_seq": 3.}},
		{"shell", "strange_request", object{}, "strange_reply", object{"status": "error", "ename": "NotImplementedError"}},
		{"", "kernel_info_request", object{}, "kernel_info_reply", object{"status": "ok"}}, // no channel is the shell
	} {
		all := c.until(idle(c.send(tc.channel, tc.kind, tc.content)))
		require.True(t, isStatus(all[0], "busy"), tc.kind)
		require.Equal(t, "5.4", all[0].Header.Version)
		got := of(t, all, tc.reply)
		for name, want := range tc.want {
			require.Equal(t, want, got[name], "%s: %v", tc.kind, got)
		}
		if tc.kind == "kernel_info_request" && tc.channel == "shell" {
			language, _ := got["language_info"].(object)
			require.Regexp(t, `^3\.\d+\.\d+`, language["version"])
		}
	}
}

// TestTheBinaryFraming carries the same messages.
func TestTheBinaryFraming(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id := s.start()
	c := s.dial(id, "v1.kernel.websocket.jupyter.org")
	require.Equal(t, "v1.kernel.websocket.jupyter.org", c.conn.Subprotocol())
	parts := []string{"shell", `{"msg_id":"m","msg_type":"execute_request","session":"x"}`, `{}`, `{}`, `{"code":"1+1"}`}
	n := len(parts) + 1
	at := 8 * (n + 1)
	frame := binary.LittleEndian.AppendUint64(nil, uint64(n))
	frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
	for _, p := range parts {
		at += len(p)
		frame = binary.LittleEndian.AppendUint64(frame, uint64(at))
	}
	for _, p := range parts {
		frame = append(frame, p...)
	}
	require.NoError(t, c.conn.WriteMessage(websocket.BinaryMessage, frame))
	for found := false; !found; {
		kind, data, err := c.conn.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, websocket.BinaryMessage, kind)
		offset := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*(i+1):]) }
		require.Equal(t, uint64(6), binary.LittleEndian.Uint64(data))
		var header, parent, content object
		require.NoError(t, json.Unmarshal(data[offset(1):offset(2)], &header))
		require.NoError(t, json.Unmarshal(data[offset(2):offset(3)], &parent))
		require.NoError(t, json.Unmarshal(data[offset(4):offset(5)], &content))
		if id, has := parent["msg_id"]; has { // else it tells what the kernel does
			require.Equal(t, "m", id)
		}
		if found = header["msg_type"] == "execute_result"; found {
			require.Equal(t, "iopub", string(data[offset(0):offset(1)]))
			require.Equal(t, object{"text/plain": "2"}, content["data"])
		}
	}
	require.NoError(t, c.conn.WriteMessage(websocket.BinaryMessage, []byte("no message")))
	for {
		if _, _, err := c.conn.ReadMessage(); err != nil {
			require.True(t, websocket.IsCloseError(err, websocket.CloseInvalidFramePayloadData), "%v", err)
			return
		}
	}
}
