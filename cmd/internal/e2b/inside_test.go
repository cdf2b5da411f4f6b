package e2b_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem/filesystemconnect"
)

// folder is where the files of a sandbox are.
func (b box) folder() string {
	b.s.t.Helper()
	w, err := b.s.host.Workspaces().Get(b.id)
	require.NoError(b.s.t, err)
	return w.Folder()
}

// TestMetadataOfFiles is kept with each, and told wherever the file is.
func TestMetadataOfFiles(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	octets := []string{"Content-Type", "application/octet-stream"}
	a := b.inside("POST", "/files?path=in/m.txt", "x", append(octets, "X-Metadata-Author", "Ann B", "x-metadata-kind", "text")...)
	if a.status == http.StatusNotImplemented { // the file system has no attributes
		require.NoFileExists(t, filepath.Join(b.folder(), "in/m.txt"))
		return
	}
	require.Equal(t, http.StatusOK, a.status, a.text)
	require.Contains(t, a.text, `"metadata":{"author":"Ann B","kind":"text"}`)
	want := map[string]string{"author": "Ann B", "kind": "text"}
	c := b.files(connect.WithProtoJSON())
	ctx := t.Context()
	stat := func(path string) map[string]string {
		t.Helper()
		r, err := c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: path}))
		require.NoError(t, err)
		return r.Msg.GetEntry().GetMetadata()
	}
	require.Equal(t, want, stat("in/m.txt"))
	require.Empty(t, stat("in"))
	list, err := c.ListDir(ctx, connect.NewRequest(&filesystem.ListDirRequest{Path: "in", Depth: 1}))
	require.NoError(t, err)
	require.Equal(t, want, list.Msg.GetEntries()[0].GetMetadata())
	moved, err := c.Move(ctx, connect.NewRequest(&filesystem.MoveRequest{Source: "in/m.txt", Destination: "n.txt"}))
	require.NoError(t, err)
	require.Equal(t, want, moved.Msg.GetEntry().GetMetadata())
	require.Equal(t, http.StatusOK, b.inside("POST", "/files?path=n.txt", "y", octets...).status)
	require.Empty(t, stat("n.txt"), "what is written takes the place of all")
}

// known adds what opens a sandbox to each request.
type known struct{ b box }

// RoundTrip makes the request.
func (k known) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	h := k.b.headers()
	for i := 0; i < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	return k.b.s.http.Transport.RoundTrip(r)
}

// files is a client of the service filesystem, in one of the two encodings.
func (b box) files(o ...connect.ClientOption) filesystemconnect.FilesystemClient {
	return filesystemconnect.NewFilesystemClient(&http.Client{Transport: known{b}}, b.s.url, o...)
}

func TestFilesUpAndDown(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	octets := []string{"Content-Type", "application/octet-stream"}
	one := func(a answer) map[string]any {
		t.Helper()
		require.Equal(t, http.StatusOK, a.status, a.text)
		var list []map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.text), &list))
		require.Len(t, list, 1)
		return list[0]
	}
	for _, path := range []string{"a.txt", "/home/user/deep/er/ü b.txt", "~/c", filepath.Join(b.folder(), "d")} {
		at := "/files?path=" + url.QueryEscape(path)
		got := one(b.inside("POST", at, "hello "+path, octets...))
		require.Equal(t, filepath.Base(path), got["name"])
		data, err := os.ReadFile(got["path"].(string))
		require.NoError(t, err, "the path is one that code can open")
		require.Equal(t, "hello "+path, string(data))
		down := b.inside("GET", at, "")
		require.Equal(t, http.StatusOK, down.status)
		require.Equal(t, "hello "+path, down.text)
	}
	one(b.inside("POST", "/files?path=empty", "", octets...))
	empty := b.inside("GET", "/files?path=empty", "")
	require.Equal(t, "0", empty.header.Get("Content-Length"))

	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte("was compressed"))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	one(b.inside("POST", "/files?path=z", zipped.String(), append(octets, "Content-Encoding", "gzip")...))
	require.Equal(t, "was compressed", b.inside("GET", "/files?path=z", "").text)

	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	for _, name := range []string{"x/1.txt", "x/2.txt"} {
		part, err := m.CreateFormFile("file", name)
		require.NoError(t, err)
		_, err = part.Write([]byte(name))
		require.NoError(t, err)
	}
	require.NoError(t, m.WriteField("other", "left out"))
	require.NoError(t, m.Close())
	a := b.inside("POST", "/files", form.String(), "Content-Type", m.FormDataContentType())
	require.Equal(t, http.StatusOK, a.status, a.text)
	require.Equal(t, "x/2.txt", b.inside("GET", "/files?path=x/2.txt", "").text, "a part is called by its whole path")

	for name, tc := range map[string]struct {
		answer
		want int
	}{
		"not there":         {b.inside("GET", "/files?path=none", ""), 404},
		"a directory":       {b.inside("GET", "/files?path=x", ""), 400},
		"outside":           {b.inside("GET", "/files?path=/etc/passwd", ""), 400},
		"upwards":           {b.inside("GET", "/files?path=../x", ""), 400},
		"upwards in home":   {b.inside("GET", "/files?path=/home/user/../../etc/passwd", ""), 400},
		"written outside":   {b.inside("POST", "/files?path=/tmp/e2b-x", "x", octets...), 400},
		"no path":           {b.inside("POST", "/files", "x", octets...), 400},
		"no form":           {b.inside("POST", "/files?path=q", "x", "Content-Type", "multipart/form-data; boundary=x"), 400},
		"neither":           {b.inside("POST", "/files?path=q", "{}"), 415},
		"another user":      {b.inside("GET", "/files?path=a.txt&username=nobody-else", ""), 401},
		"another encoding":  {b.inside("POST", "/files?path=q", "x", append(octets, "Content-Encoding", "br")...), 400},
		"E2B's own user":    {b.inside("GET", "/files?path=a.txt&username=user", ""), 200},
		"not as it says it": {b.inside("POST", "/files?path=q", "x", append(octets, "Content-Encoding", "gzip")...), 400},
	} {
		require.Equal(t, tc.want, tc.status, name+": "+tc.text)
		if tc.want != http.StatusOK {
			require.InDelta(t, tc.want, tc.json(t)["code"], 0, name)
		}
	}
	_, err = os.Stat(filepath.Join(b.folder(), "q"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestSignedAddresses opens files by addresses as clients make them: without the base, and
// without a header.
func TestSignedAddresses(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.make(`{}`)
	b := s.make(`{}`)
	b.inside("POST", "/files?path=a.txt", "hello", "Content-Type", "application/octet-stream")
	address := func(path, operation, user string, until int64) string {
		raw := path + ":" + operation + ":" + user + ":" + b.access
		q := url.Values{"path": {path}}
		if user != "" {
			q.Set("username", user)
		}
		if until != 0 {
			raw += fmt.Sprintf(":%d", until)
			q.Set("signature_expiration", fmt.Sprint(until))
		}
		sum := sha256.Sum256([]byte(raw))
		q.Set("signature", "v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))
		return s.root + "/files?" + q.Encode()
	}
	later, before := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	require.Equal(t, "hello", s.ask("GET", address("a.txt", "read", "", 0), "").text)
	require.Equal(t, "hello", s.ask("GET", address("a.txt", "read", "user", later), "").text)
	late := s.ask("GET", address("a.txt", "read", "", before), "")
	require.Equal(t, http.StatusUnauthorized, late.status)
	require.Equal(t, map[string]any{"code": 401.0, "message": "signature is already expired"}, late.json(t))
	require.Equal(t, http.StatusUnauthorized, s.ask("GET", address("a.txt", "write", "", 0), "").status)
	require.Equal(t, http.StatusUnauthorized, s.ask("GET", address("a.txt", "read", "", 0)+"x", "").status)
	require.Equal(t, http.StatusUnauthorized, s.ask("GET", s.root+"/files?path=a.txt", "").status)
	require.Equal(t, http.StatusOK, s.ask("POST", address("b.txt", "write", "", later), "by address", "Content-Type", "application/octet-stream").status)
	require.Equal(t, "by address", b.inside("GET", "/files?path=b.txt", "").text)
}

func TestTheServiceOfFiles(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, options := range map[string][]connect.ClientOption{"binary": nil, "JSON": {connect.WithProtoJSON()}} {
		b := s.make(`{}`)
		c := b.files(options...)
		ctx := t.Context()
		code := connect.CodeOf
		made, err := c.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: "/home/user/d/e"}))
		require.NoError(t, err, name)
		require.Equal(t, filepath.Join(b.folder(), "d", "e"), made.Msg.GetEntry().GetPath())
		_, err = c.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: "d/e"}))
		require.Equal(t, connect.CodeAlreadyExists, code(err))
		b.inside("POST", "/files?path=d/a", "12345", "Content-Type", "application/octet-stream")
		_, err = c.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: "d/a"}))
		require.Equal(t, connect.CodeInvalidArgument, code(err))
		require.NoError(t, os.Symlink("a", filepath.Join(b.folder(), "d", "link")))

		stat, err := c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: "d/link"}))
		require.NoError(t, err)
		e := stat.Msg.GetEntry()
		require.True(t, e.GetIsSymlink())
		require.Equal(t, filesystem.FileType_FILE_TYPE_FILE, e.GetType(), "what it leads to")
		require.Equal(t, filepath.Join(b.folder(), "d", "a"), e.GetSymlinkTarget())
		require.EqualValues(t, 5, e.GetSize())
		stat, err = c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: "d"}))
		require.NoError(t, err)
		require.Positive(t, stat.Msg.GetEntry().GetSize())
		require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(b.folder(), "out")))
		stat, err = c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: "out"}))
		require.NoError(t, err)
		require.Equal(t, "/etc/passwd", stat.Msg.GetEntry().GetSymlinkTarget(), "as it says: what is outside is not looked at")
		require.Equal(t, filesystem.FileType_FILE_TYPE_SYMLINK, stat.Msg.GetEntry().GetType())
		require.NoError(t, os.Remove(filepath.Join(b.folder(), "out")))
		for _, path := range []string{"none", "/home/user/d/none"} {
			_, err = c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: path}))
			require.Equal(t, connect.CodeNotFound, code(err))
		}
		_, err = c.Stat(ctx, connect.NewRequest(&filesystem.StatRequest{Path: "/etc"}))
		require.Equal(t, connect.CodeInvalidArgument, code(err))

		names := func(path string, depth uint32) []string {
			list, err := c.ListDir(ctx, connect.NewRequest(&filesystem.ListDirRequest{Path: path, Depth: depth}))
			require.NoError(t, err)
			found := []string{}
			for _, e := range list.Msg.GetEntries() {
				found = append(found, e.GetName())
			}
			return found
		}
		require.Equal(t, []string{"d"}, names("/home/user", 0))
		require.Equal(t, []string{"d", "a", "e", "link"}, names("", 2))
		_, err = c.ListDir(ctx, connect.NewRequest(&filesystem.ListDirRequest{Path: "d/a"}))
		require.Equal(t, connect.CodeInvalidArgument, code(err))

		moved, err := c.Move(ctx, connect.NewRequest(&filesystem.MoveRequest{Source: "d/a", Destination: "new/b"}))
		require.NoError(t, err)
		require.Equal(t, "b", moved.Msg.GetEntry().GetName())
		_, err = c.Move(ctx, connect.NewRequest(&filesystem.MoveRequest{Source: "d/a", Destination: "x/y"}))
		require.Equal(t, connect.CodeNotFound, code(err))
		require.NoDirExists(t, filepath.Join(b.folder(), "x"))
		for range 2 {
			_, err = c.Remove(ctx, connect.NewRequest(&filesystem.RemoveRequest{Path: "d"}))
			require.NoError(t, err, "what is not there is gone already")
		}
		require.Equal(t, []string{"new"}, names("", 1))
	}
}

// want are the events of a watch that a client expects when a file is written by the API,
// written again, given another name by a program, and removed.
var want = []string{"CREATE a", "WRITE a", "WRITE a", "RENAME a", "CREATE b", "REMOVE b"}

// change makes them.
func change(t *testing.T, b box) {
	t.Helper()
	for range 2 {
		b.inside("POST", "/files?path=w/a", "x", "Content-Type", "application/octet-stream")
	}
	require.NoError(t, os.Rename(filepath.Join(b.folder(), "w", "a"), filepath.Join(b.folder(), "w", "b")))
	require.NoError(t, os.Remove(filepath.Join(b.folder(), "w", "b")))
}

// told is an event in words, without those about permissions.
func told(list []string, e *filesystem.FilesystemEvent) []string {
	kind := e.GetType().String()[len("EVENT_TYPE_"):]
	if kind == "CHMOD" {
		return list
	}
	return append(list, kind+" "+e.GetName())
}

func TestWatches(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := s.make(`{}`)
	c := b.files(connect.WithProtoJSON())
	ctx := t.Context()
	_, err := c.MakeDir(ctx, connect.NewRequest(&filesystem.MakeDirRequest{Path: "w"}))
	require.NoError(t, err)
	stream, err := c.WatchDir(ctx, connect.NewRequest(&filesystem.WatchDirRequest{Path: "w", IncludeEntry: true}))
	require.NoError(t, err)
	require.True(t, stream.Receive())
	require.NotNil(t, stream.Msg().GetStart())
	made, err := c.CreateWatcher(ctx, connect.NewRequest(&filesystem.CreateWatcherRequest{Path: "/home/user/w", Recursive: true}))
	require.NoError(t, err)
	id := made.Msg.GetWatcherId()
	change(t, b)
	var streamed, polled []string
	for len(streamed) < len(want) && stream.Receive() {
		if e := stream.Msg().GetFilesystem(); e != nil {
			streamed = told(streamed, e)
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, want, streamed)
	require.NoError(t, stream.Close())
	for len(polled) < len(want) {
		got, err := c.GetWatcherEvents(ctx, connect.NewRequest(&filesystem.GetWatcherEventsRequest{WatcherId: id}))
		require.NoError(t, err)
		for _, e := range got.Msg.GetEvents() {
			polled = told(polled, e)
		}
	}
	require.Equal(t, want, polled)
	_, err = c.RemoveWatcher(ctx, connect.NewRequest(&filesystem.RemoveWatcherRequest{WatcherId: id}))
	require.NoError(t, err)
	_, err = c.GetWatcherEvents(ctx, connect.NewRequest(&filesystem.GetWatcherEventsRequest{WatcherId: id}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = c.CreateWatcher(ctx, connect.NewRequest(&filesystem.CreateWatcherRequest{Path: "none"}))
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = c.CreateWatcher(ctx, connect.NewRequest(&filesystem.CreateWatcherRequest{Path: "w"}))
	require.NoError(t, err, "one that is left ends with the sandbox")
}
