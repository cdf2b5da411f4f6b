package workspaceapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

func permissions(bits uint32) fs.FileMode { return fs.FileMode(bits) }

// receiving is the body of a request that may take as long as it likes, as long as
// something comes now and then. The goroutine of the handler reads it.
type receiving struct {
	from    io.Reader
	w       *workspace.Workspace
	control *http.ResponseController
	silence time.Duration
	landing *landed // what has to be so at the end; nil: nothing has

	mu    sync.Mutex
	ended bool // the request is to end; guarded by mu
}

// receive begins to read the body of a request, which has size bytes, -1: it does not
// say. done is called when it was read, or will not be.
func (h *handler) receive(w http.ResponseWriter, r *http.Request, at place, size int64) (up *receiving, done func(), err error) {
	if quota := at.files.Quota(); quota > 0 && size > quota {
		return nil, nil, &refusal{http.StatusRequestEntityTooLarge, "quota", "the body is larger than the folder may be", "make a workspace with a larger quota_bytes"}
	}
	leave, err := at.w.Enter()
	if err != nil {
		return nil, nil, err
	}
	up = &receiving{from: r.Body, w: at.w, control: http.NewResponseController(w), silence: h.o.Silence}
	stop := context.AfterFunc(r.Context(), up.end)
	return up, func() {
		stop()
		up.landing.release()
		leave()
	}, nil
}

// end ends what waits for more of the body.
func (up *receiving) end() {
	up.mu.Lock()
	defer up.mu.Unlock()
	up.ended = true
	_ = up.control.SetReadDeadline(time.Unix(1, 0)) // a connection that is gone needs none
}

// awake lets the next read wait.
func (up *receiving) awake() {
	up.mu.Lock()
	defer up.mu.Unlock()
	if !up.ended {
		_ = up.control.SetReadDeadline(time.Now().Add(up.silence)) // where there is no connection, nothing is waited for
	}
}

// Read reads on. At the end of the body the file may still be refused its place.
func (up *receiving) Read(p []byte) (int, error) {
	if err := up.w.Err(); err != nil {
		return 0, err
	}
	up.awake()
	n, err := up.from.Read(p)
	if errors.Is(err, io.EOF) && up.landing != nil {
		if changed := up.landing.hold(); changed != nil {
			return n, changed
		}
	}
	return n, err
}

// errChanged is matched when a file is not the one that If-Match names.
var errChanged = errors.New("the file is another one by now")

// landing lets requests that name what they replace take their turns at that.
type landing struct{ mu sync.Mutex }

// landed is the turn of one request.
type landed struct {
	of    *landing
	f     *files.Folder
	name  string
	match string
	held  bool
}

func (l *landing) of(f *files.Folder, name, match string) *landed {
	return &landed{of: l, f: f, name: name, match: match}
}

// matches reports whether the file is one that may be replaced.
func (l *landed) matches() error {
	info, err := l.f.Stat(l.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	}
	for one := range strings.SplitSeq(l.match, ",") {
		if one = strings.TrimSpace(one); one == "*" || one != "" && one == tag(info) {
			return nil
		}
	}
	return errChanged
}

// hold takes the turn, and looks again: another request may have been first.
func (l *landed) hold() error {
	if !l.held {
		l.of.mu.Lock()
		l.held = true
	}
	return l.matches()
}

// release ends the turn, if there is one.
func (l *landed) release() {
	if l != nil && l.held {
		l.held = false
		l.of.mu.Unlock()
	}
}

// maxParts bounds how many files one form may bring.
const maxParts = maxEntries

// formField is the name of each part of a form, as the document has it.
const formField = "file"

// upload writes the files of a form: each part that has a filename, which is its path
// below the folder that the request names.
func (h *handler) upload(w http.ResponseWriter, r *http.Request, at place) error {
	folder, err := path(r, ".")
	if err != nil {
		return err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return &refusal{http.StatusUnsupportedMediaType, "no_form", "the body is not said to be a form", "send multipart/form-data, or PUT one file"}
	}
	up, done, err := h.receive(w, r, at, -1)
	if err != nil {
		return err
	}
	defer done()
	r.Body = io.NopCloser(&formBody{from: up, final: []byte("\n--" + params["boundary"] + "--"), last: []byte("\n")})
	form, err := r.MultipartReader()
	if err != nil {
		return bad("", "the form cannot be read: %v", err)
	}
	told := client.Files{Files: []client.File{}}
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return formProblem(err)
		}
		if field := part.FormName(); field != formField {
			return bad("", "the form has a field %.80q, and may have %q alone, as often as there are files", field, formField)
		}
		name := filename(part)
		if name == "" { // a field that is no file
			if _, err := io.Copy(io.Discard, part); err != nil {
				return formProblem(err)
			}
			continue
		}
		if len(told.Files) >= maxParts {
			return bad("", "a form may bring %d files", maxParts)
		}
		if err := checkPath("filename", name); err != nil {
			return err
		}
		info, err := at.files.Write(r.Context(), below(folder, name), part, files.WriteOptions{})
		if err != nil {
			return err
		}
		told.Files = append(told.Files, entry(info))
	}
	if len(told.Files) == 0 {
		return bad(`send parts such as: Content-Disposition: form-data; name="file"; filename="folder/name"`, "the form has no file")
	}
	httpserver.JSON(w, http.StatusOK, told)
	return nil
}

// formBody is the body of a form. Where that ends before the form does, it was cut off:
// package multipart tells an end between two parts as that of the form.
type formBody struct {
	from  io.Reader
	final []byte // what the form ends with
	last  []byte // what was read last and may be the beginning of final
	whole bool   // final was read
}

// Read reads on.
func (b *formBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if !b.whole {
		b.last = append(b.last, p[:n]...)
		b.whole = bytes.Contains(b.last, b.final)
		b.last = append(b.last[:0], b.last[max(0, len(b.last)-len(b.final)+1):]...)
	}
	if errors.Is(err, io.EOF) && !b.whole {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// below is the path of a part's file. An absolute one stays so, and is refused.
func below(folder, name string) string {
	if folder == "." || strings.HasPrefix(name, "/") || strings.HasPrefix(name, `\`) {
		return name
	}
	return folder + "/" + name
}

// filename is the whole one of a part, with its folders; "": it has none.
func filename(part *multipart.Part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return params["filename"]
}

// formProblem tells a form that is none from one that did not come.
func formProblem(err error) error {
	if meaning(err) != nil {
		return err
	}
	return bad("", "the form cannot be read: %v", err)
}
