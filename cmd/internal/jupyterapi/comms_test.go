package jupyterapi_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/test/testpython"
)

// backends run kernels, with what widgets and figures need.
var backends = map[string]func(*coppice.Options){
	"runner":  func(o *coppice.Options) { o.Backend = coppice.Runner(coppice.RunnerOptions{}) },
	"gateway": func(o *coppice.Options) { o.Backend = coppice.Gateway(coppice.GatewayOptions{}) },
}

// extras puts packages into the path of kernels.
func extras(t *testing.T) func(*coppice.Options) {
	return func(o *coppice.Options) { o.Env = append(os.Environ(), "PYTHONPATH="+testpython.Extras(t)) }
}

// say sends a message over a comm, and returns what came of it.
func (c *socket) say(kind, id string, data object, more object) []received {
	c.t.Helper()
	content := object{"comm_id": id, "data": data}
	maps.Copy(content, more)
	return c.until(idle(c.send("shell", kind, content)))
}

// comms are the comms that a kernel tells of.
func (c *socket) comms(target string) object {
	c.t.Helper()
	content := object{}
	if target != "" {
		content["target_name"] = target
	}
	list, _ := of(c.t, c.until(idle(c.send("shell", "comm_info_request", content))), "comm_info_reply")["comms"].(object)
	return list
}

// TestComms: objects of a kernel and of clients open comms, and say things over them.
func TestComms(t *testing.T) {
	t.Parallel()
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, backend)
			id := s.start()
			c, other := s.dial(id), s.dial(id)
			all := c.execute("import comm\nsaid = comm.create_comm(target_name='there', data={'a': 1}, metadata={'version': '2'})\nprint('between', flush=True)\nsaid.send({'b': 2})")
			require.Equal(t, []string{"status", "execute_input", "comm_open", "stream", "comm_msg", "execute_reply", "status"}, kinds(all))
			opened := of(t, all, "comm_open")
			require.Equal(t, "there", opened["target_name"])
			require.Equal(t, object{"a": 1.}, opened["data"])
			require.Equal(t, object{"b": 2.}, of(t, all, "comm_msg")["data"])
			require.Equal(t, "2", all[slices.Index(kinds(all), "comm_open")].Metadata["version"])
			require.Contains(t, kinds(other.until(idle(all[0].Parent.ID))), "comm_open", "every client sees it")
			there, _ := opened["comm_id"].(string)
			require.Equal(t, object{there: object{"target_name": "there"}}, c.comms(""))
			require.Empty(t, c.comms("elsewhere"))

			// What a client says arrives, and what code shows then is of that message.
			c.execute("@said.on_msg\ndef _(m): print('heard', m['content']['data']['n'], [bytes(b) for b in m['buffers']])")
			all = c.say("comm_msg", there, object{"n": 7}, nil)
			require.Equal(t, []string{"status", "stream", "status"}, kinds(all))
			require.Equal(t, "heard 7 []\n", text(all))
			all = c.execute("said.close()")
			require.Contains(t, kinds(all), "comm_close")
			require.Empty(t, c.comms(""))
			require.Equal(t, []string{"status", "status"}, kinds(c.say("comm_msg", there, object{"n": 8}, nil)), "nobody is there")

			// One that a client opens reaches the target that code has registered.
			c.execute("def opened(one, m):\n    print('opened with', m['content']['data'], flush=True)\n    one.send({'welcome': True})\n    one.on_close(lambda m: print('closed'))\ncomm.get_comm_manager().register_target('mine', opened)")
			all = c.say("comm_open", "abc", object{"x": 1}, object{"target_name": "mine"})
			require.Equal(t, []string{"status", "stream", "comm_msg", "status"}, kinds(all))
			require.Equal(t, object{"abc": object{"target_name": "mine"}}, c.comms("mine"))
			require.Equal(t, "closed\n", text(c.say("comm_close", "abc", object{}, nil)))
			require.Empty(t, c.comms(""))
			all = c.say("comm_open", "def", object{}, object{"target_name": "nobody's"})
			require.Equal(t, "def", of(t, all, "comm_close")["comm_id"])
			require.Empty(t, c.comms(""))

			// A callback that fails is told, and ends nothing.
			c.execute("one = comm.create_comm(target_name='t', comm_id='one')\none.on_msg(lambda m: 1/0)")
			require.Contains(t, text(c.say("comm_msg", "one", object{}, nil)), "ZeroDivisionError")
			// With another process, all comms are at their end.
			s.rest("POST", "/api/kernels/"+id+"/restart", "", 200, nil)
			c.until(func(m received) bool { return m.Header.Type == "comm_close" && m.Content["comm_id"] == "one" })
			c.until(func(m received) bool { return m.Parent.ID == "" && isStatus(m, "idle") })
			require.Empty(t, c.comms(""))
		})
	}
}

// TestCommsBetweenCells: what a thread says when nothing runs comes with what runs next.
func TestCommsBetweenCells(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := s.dial(s.start())
	c.execute("import comm, threading\none = comm.create_comm(target_name='t')\nt = threading.Timer(.05, lambda: [one.send({'n': n}) for n in range(3)])\nt.start()")
	var said []any
	for len(said) < 3 {
		for _, m := range c.execute("t.is_alive()") {
			if m.Header.Type == "comm_msg" {
				data, _ := m.Content["data"].(object)
				said = append(said, data["n"])
			}
		}
	}
	require.Equal(t, []any{0., 1., 2.}, said)
}

// TestCommBuffers come and go in either framing.
func TestCommBuffers(t *testing.T) {
	t.Parallel()
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, backend)
			id := s.start()
			c := s.dial(id)
			c.execute("import comm\none = comm.create_comm(target_name='t', comm_id='one')\none.on_msg(lambda m: one.send({'back': True}, buffers=[bytes(b)[::-1] for b in m['buffers']]))")
			for _, v1 := range []bool{false, true} {
				var offer []string
				if v1 {
					offer = []string{"v1.kernel.websocket.jupyter.org"}
				}
				raw := s.dial(id, offer...)
				head := `{"msg_id":"` + name + `","msg_type":"comm_msg","session":"x"}`
				back := jupyterapi.Roundtrip(t, raw.conn, v1, head, `{"comm_id":"one","data":{}}`, []byte("abc"), []byte{0, 255})
				require.Equal(t, [][]byte{[]byte("cba"), {255, 0}}, back, "%s, v1 %v", name, v1)
			}
		})
	}
}

// TestASliderMovesAPlot: a widget is shown, a client moves it, and the plot that belongs to it
// is drawn anew, into the output of the widget.
func TestASliderMovesAPlot(t *testing.T) {
	t.Parallel()
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, backend, extras(t))
			c := s.dial(s.start())
			c.execute("import matplotlib.pyplot as plt\nfrom ipywidgets import interact\n" +
				"def draw(n=3):\n    plt.figure(figsize=(1, 1)); plt.plot(range(n)); plt.show()\n    print('drawn', n)\n    if n == 5: 1/0\n")
			all := c.execute("interact(draw, n=(1, 5));")
			models := map[string]string{}
			for _, m := range all {
				if m.Header.Type == "comm_open" {
					data, _ := m.Content["data"].(object)
					state, _ := data["state"].(object)
					model, _ := state["_model_name"].(string)
					models[model], _ = m.Content["comm_id"].(string)
					require.Equal(t, "jupyter.widget", m.Content["target_name"])
					require.NotEmpty(t, m.Metadata["version"], "frontends refuse one without the version of the protocol")
				}
			}
			require.NotEmpty(t, models["IntSliderModel"], "%v", models)
			require.Len(t, shown(all, "application/vnd.jupyter.widget-view+json"), 1)
			require.Equal(t, []string{"drawn 3\n"}, captured(t, all, models["OutputModel"]))

			move := func(n int) []received {
				return c.say("comm_msg", models["IntSliderModel"], object{"method": "update", "state": object{"value": n}, "buffer_paths": []any{}}, nil)
			}
			all = move(4)
			require.Equal(t, []string{"drawn 4\n"}, captured(t, all, models["OutputModel"]))
			figures := shown(all, "image/png")
			require.Len(t, figures, 1)
			require.NotEqual(t, shown(move(3), "image/png"), figures)
			all = move(5) // IPython has an error for it
			require.True(t, strings.Contains(text(all), "ZeroDivisionError") || of(t, all, "error")["ename"] == "ZeroDivisionError", "why a callback failed is said")
			require.Contains(t, captured(t, move(2), models["OutputModel"]), "drawn 2\n", "and it goes on")
		})
	}
}

// shown are the parts of displays that are of a type.
func shown(all []received, mime string) []any {
	var parts []any
	for _, m := range all {
		data, _ := m.Content["data"].(object)
		if part, there := data[mime]; there && m.Header.Type == "display_data" {
			parts = append(parts, part)
		}
	}
	return parts
}

// captured is what the streams wrote while an Output widget took what a request shows.
func captured(t *testing.T, all []received, widget string) []string {
	t.Helper()
	var texts []string
	taking := false
	for _, m := range all {
		switch m.Header.Type {
		case "comm_msg":
			data, _ := m.Content["data"].(object)
			state, _ := data["state"].(object)
			if id, told := state["msg_id"]; told && m.Content["comm_id"] == widget {
				if taking = id != ""; taking {
					require.Equal(t, m.Parent.ID, id, "what it takes is what the request shows")
				}
			}
		case "stream":
			if taking {
				s, _ := m.Content["text"].(string)
				texts = append(texts, s)
			}
		case "display_data":
			data, _ := m.Content["data"].(object)
			if _, figure := data["image/png"]; figure {
				require.True(t, taking, "a figure is in the widget")
			}
		}
	}
	return texts
}
