package contents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// most is how large a file may be that is read or saved, in bytes.
	most = 128 << 20
	// maxBody bounds a request, in bytes: a file as base64 in JSON.
	maxBody = most/3*4 + 1<<20
)

// Contents serves the files of a folder. Make it with New, and Close it. The methods may be
// called from any goroutine.
type Contents struct {
	dir, base string

	mu     sync.Mutex
	folder *files.Folder // nil until it is needed; guarded by mu
	closed bool          // guarded by mu
	parts  []*upload     // files whose end has not come, the newest last; guarded by mu
}

// New serves the folder at dir, which is opened with the first request. base is the path
// that the API stands below for its clients.
func New(dir, base string) *Contents { return &Contents{dir: dir, base: base} }

// Close lets go of the folder. Requests that come later fail.
func (c *Contents) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.parts = true, nil
	if c.folder == nil {
		return nil
	}
	return c.folder.Close()
}

// open is the folder.
func (c *Contents) open() (*files.Folder, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, files.ErrClosed
	}
	if c.folder == nil {
		folder, err := files.Open(c.dir, files.Options{})
		if err != nil {
			return nil, err
		}
		c.folder = folder
	}
	return c.folder, nil
}

// request is one that is about a path.
type request struct {
	*http.Request
	c      *Contents
	folder *files.Folder
	at     string // the path, "" for the folder itself
}

// answer is what becomes of a request: a status, and what is in its body, nil for nothing.
type answer struct {
	status   int
	location string
	body     any
}

// Routes are the patterns of the API, below its base, with what serves them.
func (c *Contents) Routes() map[string]http.HandlerFunc {
	routes := map[string]http.HandlerFunc{}
	for method, serve := range map[string]func(request) (answer, error){
		http.MethodGet: get, http.MethodPost: create, http.MethodPut: save, http.MethodPatch: rename, http.MethodDelete: remove,
	} {
		routes[method+" /api/contents"] = c.about(serve)
		routes[method+" /api/contents/{path...}"] = c.about(c.either(method, serve))
	}
	routes["GET /files/{path...}"] = c.download
	return routes
}

// either is the request for a path, or for its checkpoints.
func (c *Contents) either(method string, serve func(request) (answer, error)) func(request) (answer, error) {
	return func(r request) (answer, error) {
		if at, ok := strings.CutSuffix(r.at, "/checkpoints"); ok {
			r.at = at
			return checkpoints(method, r)
		}
		if at, id := path.Split(r.at); method != http.MethodGet && strings.HasSuffix(at, "/checkpoints/") {
			r.at = strings.TrimSuffix(at, "/checkpoints/")
			return checkpoint(method, r, id)
		}
		return serve(r)
	}
}

// about serves requests that are about a path.
func (c *Contents) about(serve func(request) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := c.serve(w, r, serve)
		if err != nil {
			refuse(w, err)
			return
		}
		if a.location != "" {
			w.Header().Set("Location", c.base+"/api/contents/"+escaped(a.location))
		}
		if a.body == nil {
			w.WriteHeader(a.status)
			return
		}
		tell(w, a.status, a.body)
	}
}

func (c *Contents) serve(w http.ResponseWriter, r *http.Request, serve func(request) (answer, error)) (answer, error) {
	folder, err := c.open()
	if err != nil {
		return answer{}, err
	}
	at := strings.Trim(r.PathValue("path"), "/")
	if err := visible(at); err != nil {
		return answer{}, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	return serve(request{r, c, folder, at})
}

// visible refuses what is hidden.
func visible(at string) error {
	for element := range strings.SplitSeq(at, "/") {
		if strings.HasPrefix(element, ".") && element != "." && element != ".." { // those are the folder's to refuse
			return &problem{http.StatusNotFound, "file or directory does not exist: " + quoted(at), ""}
		}
	}
	return nil
}

// read reads the body, a JSON object, into to; no body leaves it as it is.
func (r request) read(to any) error {
	data, err := io.ReadAll(r.Body)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody), ""}
	}
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return &problem{http.StatusBadRequest, "Invalid JSON in body of request", err.Error()}
	}
	return nil
}

// problem is an error as Jupyter Server writes it.
type problem struct {
	status          int
	message, reason string
}

func (p *problem) Error() string { return p.message }

// quoted is a path in a sentence.
func quoted(at string) string { return fmt.Sprintf("%.200q", at) }

// refuse answers a request that was not fulfilled.
func refuse(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = &problem{status: http.StatusInternalServerError, message: err.Error()}
		for status, kinds := range map[int][]error{
			http.StatusNotFound:            {fs.ErrNotExist, files.ErrOutside},
			http.StatusConflict:            {fs.ErrExist},
			http.StatusForbidden:           {fs.ErrPermission},
			http.StatusBadRequest:          {files.ErrPath, files.ErrLink, files.ErrNotEmpty, files.ErrIsDir, files.ErrNotDir},
			http.StatusInsufficientStorage: {files.ErrQuota, files.ErrNoSpace},
			http.StatusServiceUnavailable:  {files.ErrClosed},
		} {
			for _, kind := range kinds {
				if errors.Is(err, kind) {
					p.status = status
				}
			}
		}
		if _, large := errors.AsType[*file.TooLargeError](err); large {
			p.status = http.StatusRequestEntityTooLarge
		}
		if _, special := errors.AsType[*file.NotRegularError](err); special {
			p.status = http.StatusBadRequest
		}
	}
	body := map[string]any{"message": p.message, "reason": nil}
	if p.reason != "" {
		body["reason"] = p.reason
	}
	tell(w, p.status, body)
}

// tell answers with JSON. Other than elsewhere, no character is escaped for pages: the text of
// large files would grow.
func tell(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // a client that has gone needs no answer
}
