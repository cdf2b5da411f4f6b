package e2b_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
)

// snapshot makes a snapshot, and returns its ID.
func (b box) snapshot(body string) string {
	b.s.t.Helper()
	a := b.s.control("POST", "/sandboxes/"+b.id+"/snapshots", body)
	require.Equal(b.s.t, http.StatusCreated, a.status, a.text)
	id, _ := a.json(b.s.t)["snapshotID"].(string)
	require.NotEmpty(b.s.t, id)
	return id
}

// write writes a file.
func (b box) write(name, text string) {
	b.s.t.Helper()
	a := b.inside("POST", "/files?path="+name, text, "Content-Type", "application/octet-stream")
	require.Equal(b.s.t, http.StatusOK, a.status, a.text)
}

// read reads a file.
func (b box) read(name string) string {
	b.s.t.Helper()
	a := b.inside("GET", "/files?path="+name, "")
	require.Equal(b.s.t, http.StatusOK, a.status, a.text)
	return a.text
}

// snapshots lists the IDs of snapshots.
func (s *server) snapshots(query string) []string {
	s.t.Helper()
	a := s.control("GET", "/snapshots"+query, "")
	require.Equal(s.t, http.StatusOK, a.status, a.text)
	var list []struct {
		ID string `json:"snapshotID"`
	}
	require.NoError(s.t, json.Unmarshal([]byte(a.text), &list))
	ids := []string{}
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	return ids
}

// TestASnapshot has the files and the variables of a sandbox, for any number of others, which
// are apart from each other and from the first.
func TestASnapshot(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":600,"envVars":{"A":"first","B":"kept"},"metadata":{"of":"first"}}`)
	b.write("dir/data", "1\n2\n3\n")
	second := b.inside("POST", "/contexts", `{"cwd":"dir"}`).json(t)["id"].(string)
	b.run(`{"code":"import os; x = [1]; os.environ['HERE'] = os.getcwd() + '/dir'; far = open('dir/data'); far.readline() and None"}`)
	b.run(`{"code":"def f(): return os.path.basename(os.getcwd())\nimport os","context_id":"` + second + `"}`)
	id := b.snapshot(`{}`)
	require.Equal(t, "([1], '2\\n')", b.text(`{"code":"(x, far.readline())"}`), "the sandbox goes on")
	b.run(`{"code":"x.append(2); open('dir/data', 'w').write('changed') and None"}`)

	for range 2 {
		c := s.make(`{"templateID":"` + id + `","timeout":60,"envVars":{"A":"second"},"metadata":{"of":"second"}}`)
		require.NotEqual(t, b.id, c.id)
		require.Equal(t, map[string]any{"of": "second"}, c.shown()["metadata"])
		require.Equal(t, id, c.shown()["templateID"])
		lines := c.run(`{"code":"import os\n(x, far.readline(), os.environ['A'], os.environ['B'], os.environ['HERE'] == os.getcwd() + '/dir', far.name == os.path.abspath('dir/data'))"}`)
		require.NotEmpty(t, of(lines, "result"), lines)
		require.Equal(t, `([1], '2\n', 'second', 'kept', True, True)`, of(lines, "result")[0]["text"])
		require.Equal(t, "dir", c.text(`{"code":"f()","context_id":"`+second+`"}`))
		c.write("dir/data", "mine")
		require.Equal(t, "changed", b.read("dir/data"))
		c.run(`{"code":"x.append(3)"}`)
	}
	require.Equal(t, "[1, 2]", b.text(`{"code":"x"}`))
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/sandboxes/"+b.id, "").status)
	d := s.make(`{"templateID":"` + id + `"}`)
	require.Equal(t, "[1]", d.text(`{"code":"x"}`), "it outlives the sandbox that it was made of")

	require.Equal(t, []string{id}, s.snapshots(""))
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/templates/"+url.PathEscape(id), "").status)
	require.Equal(t, http.StatusNotFound, s.control("DELETE", "/templates/"+url.PathEscape(id), "").status)
	require.Equal(t, http.StatusNotFound, s.control("POST", "/v2/sandboxes", `{"templateID":"`+id+`"}`).status)
	left, err := os.ReadDir(filepath.Join(s.host.Dir(), "e2b", "snapshots"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestWhatACopyNamesOfTheFirst is told with the code that restores it.
func TestWhatACopyNamesOfTheFirst(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{}`)
	b.run(`{"code":"import os; where = os.getcwd()"}`)
	w, err := s.host.Workspaces().Get(b.id)
	require.NoError(t, err)
	c := s.make(`{"templateID":"` + b.snapshot(`{}`) + `"}`)
	// Another copy, of one that was not restored since, names the same.
	d := s.make(`{"templateID":"` + c.snapshot(`{}`) + `"}`)
	for _, one := range []box{c, d} {
		lines := one.run(`{"code":"(where, os.getcwd() == where)"}`)
		require.Equal(t, "('"+w.Folder()+"', False)", of(lines, "result")[0]["text"])
		require.NotEmpty(t, of(lines, "stderr"), lines)
		require.Contains(t, of(lines, "stderr")[0]["text"], "it was copied from "+w.Folder()+" to ")
	}
	b.run(`{"code":"where = 1"}`)
	e := s.make(`{"templateID":"` + b.snapshot(`{}`) + `"}`)
	require.Empty(t, of(e.run(`{"code":"where"}`), "stderr"), "nothing names it")
}

// TestAFork makes sandboxes, each with what the first has.
func TestAFork(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":600,"metadata":{"user":"ann"}}`)
	b.write("f", "before")
	b.run(`{"code":"x = {1: 'one'}"}`)
	a := s.control("POST", "/sandboxes/"+b.id+"/fork", `{"count":2,"timeout":60}`)
	require.Equal(t, http.StatusCreated, a.status, a.text)
	var list []struct {
		Sandbox struct {
			ID     string `json:"sandboxID"`
			Access string `json:"envdAccessToken"`
		} `json:"sandbox"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.text), &list))
	require.Len(t, list, 2)
	for _, one := range list {
		c := box{s: s, id: one.Sandbox.ID, access: one.Sandbox.Access}
		require.Equal(t, "before", c.read("f"))
		require.Equal(t, "{1: 'one'}", c.text(`{"code":"x"}`))
		require.Equal(t, map[string]any{"user": "ann"}, c.shown()["metadata"])
		c.write("f", "after")
	}
	require.Equal(t, "before", b.read("f"))
	require.Equal(t, "{1: 'one'}", b.text(`{"code":"x"}`))
	require.Empty(t, s.snapshots(""), "a fork leaves none")
	for _, body := range []string{`{"count":0}`, `{"count":101}`, `{"timeout":-1}`} {
		require.Equal(t, http.StatusBadRequest, s.control("POST", "/sandboxes/"+b.id+"/fork", body).status, body)
	}
	require.Equal(t, http.StatusNotFound, s.control("POST", "/sandboxes/none/fork", `{}`).status)
}

// TestWhatIsNotCopied is refused as a whole, with the reason, and the sandbox goes on.
func TestWhatIsNotCopied(t *testing.T) {
	t.Parallel()
	s := serveKeeping(t, hibernate.Lossless)
	b := s.make(`{"timeout":600}`)
	b.run(`{"code":"g = (i for i in [5])"}`)
	for _, path := range []string{"/fork", "/snapshots"} {
		a := s.control("POST", "/sandboxes/"+b.id+path, `{}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.status, a.text)
		require.Contains(t, a.json(t)["message"], "the sandbox was not copied: the context default would lose g (generator")
	}
	require.Equal(t, "5", b.text(`{"code":"next(g)"}`))
	b.run(`{"code":"del g"}`)
	require.Equal(t, http.StatusNoContent, b.pause(`{}`).status)
	require.Equal(t, http.StatusConflict, s.control("POST", "/sandboxes/"+b.id+"/snapshots", `{}`).status)
	left, err := os.ReadDir(filepath.Join(s.host.Dir(), "e2b", "snapshots"))
	if err == nil {
		require.Empty(t, left)
	}
}

// TestACopyWaitsForUploads: none has a part of a file.
func TestACopyWaitsForUploads(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{"timeout":600}`)
	w, err := s.host.Workspaces().Get(b.id)
	require.NoError(t, err)
	in, feed := io.Pipe()
	status := make(chan int)
	go func() { // ends with the pipe
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/files?path=late", in)
		if err != nil {
			status <- 0
			return
		}
		for h, i := b.headers(), 0; i+1 < len(h); i += 2 {
			req.Header.Set(h[i], h[i+1])
		}
		req.Header.Set("Content-Type", "application/octet-stream")
		resp, err := s.http.Do(req)
		if err != nil {
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	_, err = io.WriteString(feed, strings.Repeat("x", 100_000))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		list, err := os.ReadDir(w.Folder())
		return err == nil && len(list) > 0
	}, time.Minute, time.Millisecond, "it has begun")
	for _, path := range []string{"/fork", "/snapshots"} {
		a := s.control("POST", "/sandboxes/"+b.id+path, `{}`)
		require.Equal(t, http.StatusUnprocessableEntity, a.status, a.text)
		require.Contains(t, a.json(t)["message"], "the sandbox was not copied: files are being written to it")
	}
	require.NoError(t, feed.Close())
	require.Equal(t, http.StatusOK, <-status)
	c := s.make(`{"templateID":"` + b.snapshot(`{}`) + `"}`)
	require.Len(t, c.read("late"), 100_000)
}

// TestAServerThatKeepsNothing copies sandboxes that have files alone.
func TestAServerThatKeepsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	b.write("f", "text")
	id := b.snapshot(`{}`)
	require.Equal(t, "text", s.make(`{"templateID":"`+id+`"}`).read("f"))
	require.Equal(t, http.StatusNoContent, s.control("DELETE", "/templates/"+url.PathEscape(id), "").status)
	b.run(`{"code":"x = 1"}`)
	for _, path := range []string{"/fork", "/snapshots"} {
		a := s.control("POST", "/sandboxes/"+b.id+path, `{}`)
		require.Equal(t, http.StatusNotImplemented, a.status, a.text)
	}
	require.Equal(t, "1", b.text(`{"code":"x"}`))
}

// TestTheNamesOfSnapshots: a second one of a name takes the place of the first.
func TestTheNamesOfSnapshots(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, other := s.make(`{}`), s.make(`{}`)
	b.write("f", "one")
	require.Equal(t, "mine:default", b.snapshot(`{"name":"mine"}`))
	require.Equal(t, "mine:v2", b.snapshot(`{"name":"mine:v2"}`))
	b.write("f", "two")
	require.Equal(t, "mine:default", b.snapshot(`{"name":"mine"}`))
	unnamed := other.snapshot(`{}`)
	require.Equal(t, []string{unnamed, "mine:default", "mine:v2"}, s.snapshots(""), "the newest first")
	require.Equal(t, []string{"mine:default", "mine:v2"}, s.snapshots("?name=mine"))
	require.Equal(t, []string{"mine:v2"}, s.snapshots("?name=mine:v2"))
	require.Equal(t, []string{unnamed}, s.snapshots("?sandboxID="+other.id))
	require.Empty(t, s.snapshots("?name=other"))
	a := s.control("GET", "/snapshots?limit=2", "")
	require.NotEmpty(t, a.header.Get("X-Next-Token"))
	require.Equal(t, []string{"mine:v2"}, s.snapshots("?limit=2&nextToken="+a.header.Get("X-Next-Token")))
	require.Equal(t, "two", s.make(`{"templateID":"mine"}`).read("f"))
	require.Equal(t, "one", s.make(`{"templateID":"mine:v2"}`).read("f"))
	require.Equal(t, http.StatusOK, s.control("GET", "/templates/aliases/mine", "").status)
	for _, bad := range []string{"base", "base:v2", "a b", "../up", "a:b:c", "-a"} {
		body, err := json.Marshal(map[string]string{"name": bad})
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, s.control("POST", "/sandboxes/"+b.id+"/snapshots", string(body)).status, bad)
	}
	require.Equal(t, http.StatusForbidden, s.control("DELETE", "/templates/base", "").status)
}

// TestOneKeyOneSandboxOfASnapshot: what is asked twice at a time is made once.
func TestOneKeyOneSandboxOfASnapshot(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	b.write("f", "text")
	body := `{"templateID":"` + b.snapshot(`{}`) + `"}`
	answers := make(chan string, 4) // the error, or what was answered
	for range cap(answers) {
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v2/sandboxes", strings.NewReader(body))
			if err != nil {
				answers <- err.Error()
				return
			}
			for name, value := range map[string]string{"X-API-Key": key, "Content-Type": "application/json", "Idempotency-Key": "k"} {
				req.Header.Set(name, value)
			}
			resp, err := s.http.Do(req)
			if err != nil {
				answers <- err.Error()
				return
			}
			data, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // it was only read
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- string(data)
		}()
	}
	first := <-answers
	require.Contains(t, first, "sandboxID")
	for range cap(answers) - 1 {
		require.Equal(t, first, <-answers)
	}
}
