package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/sse"
)

// FileKind is what stands at a path.
type FileKind string

// The kinds. Only a FileRegular can be read and written.
const (
	FileRegular   FileKind = "file"
	FileDirectory FileKind = "directory"
	FileLink      FileKind = "symlink"
	FileOther     FileKind = "other" // a FIFO, a socket, a device
)

// File describes what stands at a path of a workspace.
type File struct {
	// Path is relative to the folder of the workspace, with slashes; "." is the folder
	// itself.
	Path string   `json:"path"`
	Kind FileKind `json:"kind"`
	// NotUTF8 says that the path has bytes that are no UTF-8, for each of which U+FFFD stands here:
	// no path that a client can write leads there, and code in the workspace has to rename it.
	NotUTF8 bool `json:"not_utf8,omitempty"`
	// Size is in bytes; of a FileRegular alone.
	Size int64 `json:"size"`
	// Mode has the permission bits, in octal: 0644.
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified"`
	// Target is what a symbolic link says.
	Target string `json:"target,omitempty"`
	// ETag tells versions of a file apart.
	ETag string `json:"etag,omitempty"`
}

// Files is a part of what a folder holds.
type Files struct {
	Files []File `json:"files"`
	// More says that there is more than was asked for.
	More bool `json:"more,omitempty"`
}

// ListFiles says what is listed. The zero value of each field is its default.
type ListFiles struct {
	// Path is a directory. "": the folder.
	Path string
	// Depth is how many levels are listed. 0: 1; negative: all.
	Depth int
	// Most is how many entries are. 0: 100,000, which is the most.
	Most int
}

// ListFiles lists a directory of a workspace.
func (c *Client) ListFiles(ctx context.Context, name string, o ListFiles) (Files, error) {
	query := url.Values{"path": {cmp.Or(o.Path, ".")}}
	if o.Depth != 0 {
		query.Set("depth", strconv.Itoa(max(o.Depth, -1)))
	}
	if o.Most > 0 {
		query.Set("most", strconv.Itoa(o.Most))
	}
	var list Files
	err := c.askWorkspace(ctx, true, http.MethodGet, name, "/files/list", query, nil, &list)
	return list, err
}

// StatFile describes what stands at a path; a symbolic link itself.
func (c *Client) StatFile(ctx context.Context, name, path string) (File, error) {
	var f File
	err := c.askWorkspace(ctx, true, http.MethodGet, name, "/files/stat", url.Values{"path": {path}}, nil, &f)
	return f, err
}

// MakeFolder makes a directory, and those above it. One that is there is no error.
func (c *Client) MakeFolder(ctx context.Context, name, path string) (File, error) {
	var f File
	err := c.askWorkspace(ctx, true, http.MethodPost, name, "/files/make", nil, map[string]string{"path": path}, &f)
	return f, err
}

// MoveFile gives something another name in the workspace. replace lets a file take the
// place of another; otherwise an error with code exists says that there is one.
func (c *Client) MoveFile(ctx context.Context, name, from, to string, replace bool) (File, error) {
	in := struct {
		From    string `json:"from"`
		To      string `json:"to"`
		Replace bool   `json:"replace,omitempty"`
	}{from, to, replace}
	var f File
	err := c.askWorkspace(ctx, false, http.MethodPost, name, "/files/move", nil, in, &f)
	return f, err
}

// RemoveFile removes what stands at a path, with all that is in it if that is said. A
// symbolic link is removed itself.
func (c *Client) RemoveFile(ctx context.Context, name, path string, all bool) error {
	query := url.Values{"path": {path}}
	if all {
		query.Set("all", "true")
	}
	return c.askWorkspace(ctx, false, http.MethodDelete, name, "/files", query, nil, nil)
}

// WriteFile says how a file is written. The zero value of each field is its default.
type WriteFile struct {
	// Mode are the permission bits of a new file, in octal. "": 644.
	Mode string
	// New refuses to replace a file.
	New bool
	// IfMatch is the ETag of the file that is to be replaced: an error with code
	// changed says that it is another one by now. "": whatever is there is replaced.
	IfMatch string
	// Size is how many bytes the content has, if that is known. 0: it is not.
	Size int64
}

// WriteFile makes what r holds the content of a file of a workspace, whole or not at all,
// and describes it. It streams, and is not repeated.
func (c *Client) WriteFile(ctx context.Context, name, path string, r io.Reader, o WriteFile) (File, error) {
	query, header := url.Values{"path": {path}}, http.Header{"Content-Type": {"application/octet-stream"}}
	if o.Mode != "" {
		query.Set("mode", o.Mode)
	}
	if o.New {
		header.Set("If-None-Match", "*")
	}
	if o.IfMatch != "" {
		header.Set("If-Match", o.IfMatch)
	}
	var f File
	err := c.sendTo(ctx, http.MethodPut, name, "/files", query, header, r, o.Size, &f)
	return f, err
}

// Content is a file that is written with others.
type Content struct {
	// Path is where it goes, relative to the folder that is named for all.
	Path string
	// Open opens what it is to hold. It is closed when it was sent.
	Open func() (io.ReadCloser, error)
}

// WriteFiles writes many files below a directory ("": the folder of the workspace) in one
// request, and describes them. Each is written whole or not at all, in their order; the
// first that cannot be written ends it.
func (c *Client) WriteFiles(ctx context.Context, name, dir string, contents iter.Seq[Content]) ([]File, error) {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	sent := make(chan struct{})
	go func() { // ends with the last file, or when the request does not read on
		defer close(sent)
		_ = w.CloseWithError(writeForm(form, contents)) // never fails
	}()
	var list Files
	err := c.sendTo(ctx, http.MethodPost, name, "/files", url.Values{"path": {cmp.Or(dir, ".")}}, http.Header{"Content-Type": {form.FormDataContentType()}}, r, 0, &list)
	_ = r.Close() // never fails
	<-sent
	return list.Files, err
}

// quoted is how a path stands in the head of a part.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func writeForm(form *multipart.Writer, contents iter.Seq[Content]) error {
	for one := range contents {
		if strings.ContainsAny(one.Path, "\r\n\x00") {
			return fmt.Errorf("a form cannot have the name %q; write that file by itself", one.Path)
		}
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="file"; filename="` + quoted.Replace(one.Path) + `"`},
			"Content-Type":        {"application/octet-stream"},
		})
		if err != nil {
			return err
		}
		from, err := one.Open()
		if err != nil {
			return fmt.Errorf("open what %s is to hold: %w", one.Path, err)
		}
		_, err = io.Copy(part, from)
		_ = from.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return form.Close()
}

// sendTo makes one request about a workspace with a body that streams; size 0: it is not
// known how long.
func (c *Client) sendTo(ctx context.Context, method, name, rest string, query url.Values, header http.Header, body io.Reader, size int64, out any) error {
	path, err := workspace(name, rest)
	if err != nil {
		return err
	}
	req, err := c.request(ctx, method, path, query, nil)
	if err != nil {
		return err
	}
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(body), -1, nil
	if size > 0 {
		req.ContentLength = size
	}
	if size > waitsForLeave || size == 0 {
		header.Set("Expect", "100-continue") // what is refused is not sent
	}
	maps.Copy(req.Header, header)
	return c.take(req, out)
}

// waitsForLeave is from how many bytes on a body is sent when the server wants it.
const waitsForLeave = 64 << 10

// ChangeOp says what happened to a file.
type ChangeOp string

// The changes.
const (
	ChangeMade      ChangeOp = "made"
	ChangeWritten   ChangeOp = "written"
	ChangeRemoved   ChangeOp = "removed"
	ChangeMovedAway ChangeOp = "moved_away"
	ChangeMode      ChangeOp = "mode"
	ChangeLost      ChangeOp = "lost"  // more happened than could be told: look again
	ChangeEnded     ChangeOp = "ended" // the last: nothing is watched any more
)

// FileChange is something that happened in a directory that is watched.
type FileChange struct {
	Seq uint64   `json:"seq"`
	Op  ChangeOp `json:"op"`
	// Path is what it happened to, relative to the folder.
	Path string `json:"path"`
	// Reason is why nothing is watched any more; of a ChangeEnded alone.
	Reason string `json:"reason,omitempty"`
}

// WatchFiles yields what happens in a directory of a workspace ("": its folder), with all
// below it if that is said, until ctx ends or a ChangeEnded. ready is called whenever
// nothing is missed from then on; nil: it is not. A connection that breaks is made again; a ChangeLost
// says that something may have been missed then.
func (c *Client) WatchFiles(ctx context.Context, name, dir string, recursive bool, ready func()) iter.Seq2[FileChange, error] {
	return func(yield func(FileChange, error) bool) {
		path, err := workspace(name, "/files/watch")
		if err != nil {
			yield(FileChange{}, err)
			return
		}
		query := url.Values{"path": {cmp.Or(dir, ".")}}
		if recursive {
			query.Set("recursive", "true")
		}
		wait, after, heard := c.newPause(), uint64(0), false
		for {
			at := after
			if heard {
				at = max(after, 1) // whoever comes back says so
			}
			fresh := true
			end, err := c.stream(ctx, http.MethodGet, path+"?"+query.Encode(), nil, at, func() {
				wait.alive()
				if fresh {
					fresh, heard = false, true
					if ready != nil {
						ready()
					}
				}
			}, func(got sse.Event) (bool, error) {
				var change FileChange
				if err := json.Unmarshal([]byte(got.Data), &change); err != nil {
					return false, &brokenError{err}
				}
				after = change.Seq
				wait.progress()
				return yield(change, nil) && change.Op != ChangeEnded, nil
			})
			if end {
				return
			}
			if !c.goOn(ctx, wait, err) {
				yield(FileChange{}, fmt.Errorf("watch %s of the workspace %s: %w", cmp.Or(dir, "."), name, cmp.Or(context.Cause(ctx), err)))
				return
			}
		}
	}
}
