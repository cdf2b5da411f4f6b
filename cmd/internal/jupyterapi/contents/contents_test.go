package contents_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/jupyterapi/contents"
)

type object = map[string]any

// server serves a folder.
type server struct {
	t   *testing.T
	dir string
	mux *http.ServeMux
}

func serve(t *testing.T) server {
	t.Helper()
	s := server{t, t.TempDir(), http.NewServeMux()}
	c := contents.New(s.dir, "/base")
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for pattern, h := range c.Routes() {
		s.mux.HandleFunc(pattern, h)
	}
	return s
}

// ask makes a request, expects a status, and returns what was answered.
func (s server) ask(method, path string, body any, want int) object {
	s.t.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		data, err := json.Marshal(body)
		require.NoError(s.t, err)
		text = string(data)
	}
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(text)))
	require.Equal(s.t, want, w.Code, "%s %s: %s", method, path, w.Body)
	var got any
	if w.Body.Len() > 0 {
		require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &got))
	}
	if list, ok := got.([]any); ok {
		return object{"list": list, "location": w.Header().Get("Location")}
	}
	o, _ := got.(object)
	if at := w.Header().Get("Location"); at != "" {
		o["location"] = at
	}
	return o
}

func (s server) write(path, text string) {
	s.t.Helper()
	require.NoError(s.t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, path)), 0o700))
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, path), []byte(text), 0o600))
}

func (s server) read(path string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, path))
	require.NoError(s.t, err)
	return string(data)
}

// names are those of a list.
func names(o object) []string {
	list, _ := o["content"].([]any)
	all := []string{}
	for _, one := range list {
		m, _ := one.(object)
		all = append(all, fmt.Sprint(m["type"], " ", m["path"]))
	}
	return all
}

// TestGet describes files in each format, and directories.
func TestGet(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.write("sub dir/ä.txt", "hé\n")
	s.write("sub dir/.hidden", "x")
	s.write("sub dir/old~", "x")
	s.write("bytes.bin", "\xff\x00")
	s.write("data.ipynb", `{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	require.NoError(t, os.Symlink("sub dir", filepath.Join(s.dir, "way")))
	require.NoError(t, os.Symlink("/etc", filepath.Join(s.dir, "out")))

	root := s.ask("GET", "/api/contents", nil, 200)
	require.Equal(t, []string{"file bytes.bin", "notebook data.ipynb", "directory sub dir", "directory way"}, names(root))
	require.Empty(t, root["path"])
	require.Equal(t, "json", root["format"])
	require.Equal(t, []string{"file sub dir/ä.txt"}, names(s.ask("GET", "/api/contents/sub%20dir/", nil, 200)))
	require.Equal(t, []string{"file way/ä.txt"}, names(s.ask("GET", "/api/contents/way", nil, 200)))
	require.Nil(t, s.ask("GET", "/api/contents/sub%20dir?content=0", nil, 200)["content"])

	for path, want := range map[string]object{
		"sub%20dir/%C3%A4.txt":                    {"name": "ä.txt", "path": "sub dir/ä.txt", "type": "file", "format": "text", "content": "hé\n", "mimetype": "text/plain", "size": 4., "writable": true},
		"sub%20dir/%C3%A4.txt?format=base64":      {"format": "base64", "content": base64.StdEncoding.EncodeToString([]byte("hé\n"))},
		"bytes.bin":                               {"format": "base64", "content": "/wA=", "mimetype": "application/octet-stream"},
		"bytes.bin?content=0&hash=1":              {"content": nil, "format": nil, "hash_algorithm": "sha256", "hash": "ea5dbf9596d187e9500f23e9a680109475341cf4e81f7e043f7d97152c10772f"},
		"data.ipynb":                              {"type": "notebook", "format": "json", "content": object{"cells": []any{}, "metadata": object{}, "nbformat": 4., "nbformat_minor": 5.}},
		"data.ipynb?type=file&format=text":        {"type": "file", "format": "text"},
		"way/%C3%A4.txt":                          {"content": "hé\n"},
		"data.ipynb?content=0&type=notebook&x=17": {"content": nil, "format": nil},
	} {
		got := s.ask("GET", "/api/contents/"+path, nil, 200)
		for name, value := range want {
			require.Equal(t, value, got[name], "%s of %s", name, path)
		}
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`, got["last_modified"])
	}
	for path, want := range map[string]int{
		"nothing": 404, "sub%20dir/.hidden": 404, "out": 404, "out/passwd": 404, "sub%20dir?type=file": 400, "bytes.bin?type=directory": 400,
		"bytes.bin?format=text": 400, "bytes.bin?type=notebook": 400, "bytes.bin?type=x": 400, "bytes.bin?format=x": 400, "bytes.bin/x": 400,
	} {
		require.Contains(t, s.ask("GET", "/api/contents/"+path, nil, want), "message", path)
	}
}

// TestSave writes files and notebooks, whole or not at all.
func TestSave(t *testing.T) {
	t.Parallel()
	s := serve(t)
	got := s.ask("PUT", "/api/contents/a.txt", object{"type": "file", "format": "text", "content": "one"}, 201)
	require.Equal(t, "/base/api/contents/a.txt", got["location"])
	require.Nil(t, got["content"])
	require.InDelta(t, 3, got["size"], 0)
	s.ask("PUT", "/api/contents/a.txt", object{"type": "file", "format": "base64", "content": "/w\nA="}, 200)
	require.Equal(t, "\xff\x00", s.read("a.txt"))
	s.ask("PUT", "/api/contents/sub", object{"type": "directory"}, 201)
	s.ask("PUT", "/api/contents/sub", object{"type": "directory"}, 200)

	s.ask("PUT", "/api/contents/sub/n.ipynb", object{"type": "notebook", "format": "json", "content": json.RawMessage(
		`{"nbformat":4,"nbformat_minor":5,"metadata":{"big":12345678901234567890,"x":1.0},"cells":[{"id":"a","cell_type":"code","metadata":{},"execution_count":1,"source":"a\nb <ä>",` +
			`"outputs":[{"output_type":"stream","name":"stdout","text":"1\n2\n"},{"output_type":"display_data","metadata":{},"data":{"text/html":"x\ny","application/json":"j\nk"}}]}]}`)}, 201)
	require.Equal(t, `{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "a",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n",
      "2\n"
     ]
    },
    {
     "data": {
      "application/json": "j\nk",
      "text/html": [
       "x\n",
       "y"
      ]
     },
     "metadata": {},
     "output_type": "display_data"
    }
   ],
   "source": [
    "a\n",
    "b <ä>"
   ]
  }
 ],
 "metadata": {
  "big": 12345678901234567890,
  "x": 1.0
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`, s.read("sub/n.ipynb"), "the form of Jupyter, and all numbers")
	content, _ := s.ask("GET", "/api/contents/sub/n.ipynb", nil, 200)["content"].(object)
	cells, _ := content["cells"].([]any)
	cell, _ := cells[0].(object)
	require.Equal(t, "a\nb <ä>", cell["source"])

	before := s.read("sub/n.ipynb")
	for name, tc := range map[string]struct {
		path string
		body any
		want int
	}{
		"no JSON":          {"a.txt", "{", 400},
		"no type":          {"a.txt", object{"content": "x"}, 400},
		"another type":     {"a.txt", object{"type": "x", "content": "x"}, 400},
		"no content":       {"a.txt", object{"type": "file", "format": "text"}, 400},
		"no format":        {"a.txt", object{"type": "file", "content": "x"}, 400},
		"no text":          {"a.txt", object{"type": "file", "format": "text", "content": 7}, 400},
		"no base64":        {"a.txt", object{"type": "file", "format": "base64", "content": "?"}, 400},
		"no notebook":      {"sub/n.ipynb", object{"type": "notebook", "content": object{"cells": 3}}, 400},
		"a text":           {"sub/n.ipynb", object{"type": "notebook", "content": "x"}, 400},
		"a bad cell":       {"sub/n.ipynb", object{"type": "notebook", "content": object{"cells": []any{7}, "nbformat": 4, "nbformat_minor": 5, "metadata": object{}}}, 400},
		"no directory":     {"no/a.txt", object{"type": "file", "format": "text", "content": "x"}, 404},
		"no parent":        {"no/dir", object{"type": "directory"}, 404},
		"a directory":      {"sub", object{"type": "file", "format": "text", "content": "x"}, 400},
		"a file":           {"a.txt", object{"type": "directory"}, 400},
		"hidden":           {".a", object{"type": "file", "format": "text", "content": "x"}, 404},
		"a piece too late": {"b.txt", object{"type": "file", "format": "text", "content": "x", "chunk": 2}, 400},
		"a last one alone": {"b.txt", object{"type": "file", "format": "text", "content": "x", "chunk": -1}, 400},
	} {
		s.ask("PUT", "/api/contents/"+tc.path, tc.body, tc.want)
		require.Equal(t, "\xff\x00", s.read("a.txt"), name)
		require.Equal(t, before, s.read("sub/n.ipynb"), name)
	}
}

// TestPieces of a file become it with the last one.
func TestPieces(t *testing.T) {
	t.Parallel()
	s := serve(t)
	put := func(path, text string, piece, want int) {
		s.ask("PUT", "/api/contents/"+path, object{"type": "file", "format": "base64", "content": base64.StdEncoding.EncodeToString([]byte(text)), "chunk": piece}, want)
	}
	put("a", "given up", 1, 201)
	put("b", "x", 1, 201)
	put("a", "one ", 1, 201)
	put("a", "two ", 2, 201)
	put("a", "twice", 2, 400)
	require.NoFileExists(t, filepath.Join(s.dir, "a"))
	put("a", "three", -1, 201)
	require.Equal(t, "one two three", s.read("a"))
	put("b", "y", -1, 201)
	require.Equal(t, "xy", s.read("b"))
	put("b", "z", -1, 400)
}

// TestNew takes names that are free.
func TestNew(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.ask("PUT", "/api/contents/sub", object{"type": "directory"}, 201)
	for _, tc := range []struct {
		at, body, want string
	}{
		{"", `{"type":"notebook"}`, "Untitled.ipynb"},
		{"", `{"ext":".ipynb"}`, "Untitled1.ipynb"},
		{"sub", `{"type":"notebook"}`, "sub/Untitled.ipynb"},
		{"", `{"type":"directory"}`, "Untitled Folder"},
		{"", `{"type":"directory"}`, "Untitled Folder 1"},
		{"", `{"type":"file","ext":".py"}`, "untitled.py"},
		{"", `{"type":"file","ext":".py"}`, "untitled1.py"},
		{"", ``, "untitled"},
		{"", `{"copy_from":"untitled.py"}`, "untitled-Copy1.py"},
		{"", `{"copy_from":"/untitled-Copy1.py"}`, "untitled-Copy2.py"},
		{"sub", `{"copy_from":"untitled.py"}`, "sub/untitled.py"},
		{"sub", `{"copy_from":"untitled.py"}`, "sub/untitled-Copy1.py"},
	} {
		got := s.ask("POST", "/api/contents/"+tc.at, tc.body, 201)
		require.Equal(t, tc.want, got["path"])
		require.FileExists(t, filepath.Join(s.dir, "Untitled.ipynb"))
	}
	require.Equal(t, "notebook", s.ask("GET", "/api/contents/Untitled.ipynb?type=notebook", nil, 200)["type"])
	s.ask("POST", "/api/contents/untitled.py", `{}`, 400)
	s.ask("POST", "/api/contents/no", `{}`, 404)
	s.ask("POST", "/api/contents", `{"copy_from":"no"}`, 404)
	s.ask("POST", "/api/contents", `{"copy_from":"sub"}`, 400)
	s.ask("POST", "/api/contents", `{"copy_from":"../x"}`, 404)
	s.ask("POST", "/api/contents", `{"type":"file","ext":"/../x"}`, 400)
}

// TestChange renames and removes.
func TestChange(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.write("a.txt", "a")
	s.write("sub/b.txt", "b")
	s.write("sub/.ipynb_checkpoints/b-checkpoint.txt", "older")
	got := s.ask("PATCH", "/api/contents/a.txt", object{"path": "/sub/c.txt"}, 200)
	require.Equal(t, "sub/c.txt", got["path"])
	s.ask("PATCH", "/api/contents/sub/c.txt", object{"path": "sub/b.txt"}, 409)
	s.ask("PATCH", "/api/contents/sub/c.txt", object{"path": "../c.txt"}, 404)
	s.ask("PATCH", "/api/contents/sub/c.txt", object{"path": ".c.txt"}, 404)
	s.ask("PATCH", "/api/contents/sub/c.txt", object{}, 400)
	s.ask("PATCH", "/api/contents/no", object{"path": "x"}, 404)
	s.ask("PATCH", "/api/contents/sub/b.txt", object{"path": "d.txt"}, 200)
	require.Equal(t, "older", s.read(".ipynb_checkpoints/d-checkpoint.txt"), "its checkpoint goes with it")

	s.ask("DELETE", "/api/contents/sub", nil, 400)
	s.ask("DELETE", "/api/contents/sub/c.txt", nil, 204)
	s.write("sub/.ipynb_checkpoints/c-checkpoint.txt", "x")
	s.ask("DELETE", "/api/contents/sub", nil, 204)
	s.ask("DELETE", "/api/contents/sub", nil, 404)
	s.ask("DELETE", "/api/contents/d.txt", nil, 204)
	require.NoFileExists(t, filepath.Join(s.dir, ".ipynb_checkpoints/d-checkpoint.txt"))
	s.ask("DELETE", "/api/contents/", nil, 400)
}

// TestCheckpoints are one for each file.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.write("sub/a.txt", "first")
	const of = "/api/contents/sub/a.txt/checkpoints"
	require.Empty(t, s.ask("GET", of, nil, 200)["list"])
	s.ask("POST", of+"/checkpoint", nil, 404)
	got := s.ask("POST", of, nil, 201)
	require.Equal(t, "checkpoint", got["id"])
	require.Equal(t, "/base"+of+"/checkpoint", got["location"])
	s.write("sub/a.txt", "second")
	require.Len(t, s.ask("GET", of, nil, 200)["list"], 1)
	s.ask("POST", of+"/other", nil, 404)
	s.ask("POST", of+"/checkpoint", nil, 204)
	require.Equal(t, "first", s.read("sub/a.txt"))
	s.ask("DELETE", of+"/checkpoint", nil, 204)
	s.ask("DELETE", of+"/checkpoint", nil, 404)
	require.Empty(t, s.ask("GET", of, nil, 200)["list"])
	s.ask("POST", "/api/contents/no/checkpoints", nil, 404)
	s.ask("POST", "/api/contents/sub/checkpoints", nil, 400)
	s.ask("PATCH", of, nil, 405)
}

// TestDownload gives the bytes of a file, as nothing that a browser runs.
func TestDownload(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.write("sub/ä.html", "<script>")
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/files/sub/%C3%A4.html", nil)
	r.Header.Set("Range", "bytes=1-3")
	s.mux.ServeHTTP(w, r)
	require.Equal(t, http.StatusPartialContent, w.Code)
	data, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	require.Equal(t, "scr", string(data))
	require.Equal(t, "sandbox", w.Header().Get("Content-Security-Policy"))
	require.Contains(t, w.Header().Get("Content-Disposition"), "attachment")
	for _, path := range []string{"/files/no", "/files/.ipynb_checkpoints/x"} {
		s.ask("GET", path, nil, 404)
	}
	s.ask("GET", "/files/sub", nil, 400)
}

// TestClosed serves nothing any more.
func TestClosed(t *testing.T) {
	t.Parallel()
	c := contents.New(t.TempDir(), "")
	require.NoError(t, c.Close())
	w := httptest.NewRecorder()
	c.Routes()["GET /api/contents"](w, httptest.NewRequestWithContext(t.Context(), "GET", "/api/contents", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
}
