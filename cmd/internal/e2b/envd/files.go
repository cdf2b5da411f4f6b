package envd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/workspace/files"
)

// written describes a file that was written.
type written struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`
	// Metadata is what is kept about it.
	Metadata map[string]string `json:"metadata,omitempty"`
}

const (
	// metadataPrefix begins the headers by which clients keep something about a file.
	metadataPrefix = "X-Metadata-"
	// attributePrefix begins the names of the attributes in which that is kept, after the
	// "user." that all of these have: programs in a sandbox find it there.
	attributePrefix = "e2b."
)

// attributes are the metadata of a request, as a file keeps them.
func attributes(h http.Header) map[string]string {
	kept := map[string]string{}
	for name, values := range h {
		if key, ok := strings.CutPrefix(name, metadataPrefix); ok && key != "" && len(values) > 0 {
			kept[attributePrefix+strings.ToLower(key)] = values[0]
		}
	}
	return kept
}

// metadata is what is kept about a file, nil for nothing.
func metadata(f *files.Folder, at string) map[string]string {
	kept, err := f.Attributes(at, attributePrefix)
	if err != nil {
		return nil // it has gone
	}
	return plainKeys(kept)
}

// plainKeys are metadata under the names that clients have for them.
func plainKeys(kept map[string]string) map[string]string {
	if len(kept) == 0 {
		return nil
	}
	plain := make(map[string]string, len(kept))
	for name, value := range kept {
		plain[strings.TrimPrefix(name, attributePrefix)] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return plain
}

// download sends a file.
func (s *Sandbox) download(w http.ResponseWriter, r *http.Request) {
	if user := r.URL.Query().Get("username"); !allowed(user) {
		answer.Error(w, http.StatusUnauthorized, otherUser(user))
		return
	}
	leave, err := s.w.Enter()
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer leave()
	opened, err := s.open(r.URL.Query().Get("path"))
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer func() { _ = opened.Close() }() // it was only read
	i := opened.Info()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(i.Path)}))
	http.ServeContent(w, r, "", i.Modified, opened)
}

// open opens a file.
func (s *Sandbox) open(name string) (*files.Reader, error) {
	at, err := s.within(name)
	if err != nil {
		return nil, err
	}
	f, err := s.w.Files()
	if err != nil {
		return nil, err
	}
	return f.Open(at)
}

// upload writes the files of a request: one as it is, or the parts of a form that are
// called file.
func (s *Sandbox) upload(w http.ResponseWriter, r *http.Request) {
	if user := r.URL.Query().Get("username"); !allowed(user) {
		answer.Error(w, http.StatusUnauthorized, otherUser(user))
		return
	}
	leave, err := s.w.Enter()
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer leave()
	slow, stop := patientBody(w, r)
	defer stop()
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		answer.Error(w, http.StatusBadRequest, "the request does not say what it holds: "+err.Error())
		return
	}
	body, err := plain(slow, r.Header.Get("Content-Encoding"))
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	name := r.URL.Query().Get("path")
	var list []written
	switch {
	case kind == "application/octet-stream" && name == "":
		err = &files.Error{Op: "write", Path: name, Err: fmt.Errorf("%w: the request names none", files.ErrPath)}
	case kind == "application/octet-stream":
		list, err = s.write(r, list, name, body)
	case kind == "multipart/form-data":
		list, err = s.writeParts(r, name, multipart.NewReader(body, params["boundary"]))
	default:
		answer.Error(w, http.StatusUnsupportedMediaType, "files come as multipart/form-data or as application/octet-stream, not as "+kind)
		return
	}
	if bad, ok := errors.AsType[*formError](err); ok {
		answer.Error(w, http.StatusBadRequest, bad.Error())
		return
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, list)
}

// plain returns what a body holds that was compressed on its way.
func plain(body io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "", "identity":
		return body, nil
	case "gzip":
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("the request is not compressed as it says: %w", err)
		}
		return unzipped, nil
	default:
		return nil, fmt.Errorf("a request that is compressed by %.40q cannot be read; use gzip", encoding)
	}
}

// formError says what is wrong with a form.
type formError struct{ err error }

// Error returns it.
func (e *formError) Error() string { return fmt.Sprintf("the form cannot be read: %v", e.err) }

// Unwrap returns what is wrong.
func (e *formError) Unwrap() error { return e.err }

// writeParts writes the files of a form: to name, when the request has it, else each to
// what its part is called.
func (s *Sandbox) writeParts(r *http.Request, name string, form *multipart.Reader) ([]written, error) {
	list := []written{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) && len(list) > 0 {
			return list, nil
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("there is no part with the name file")
		}
		if err != nil {
			return nil, &formError{err}
		}
		if part.FormName() != "file" {
			continue
		}
		to := name
		if to == "" { // Part.FileName has no folders
			_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			if err != nil {
				return nil, &formError{err}
			}
			to = params["filename"]
		}
		if to == "" {
			return nil, &formError{errors.New("a file has no name")}
		}
		if list, err = s.write(r, list, to, part); err != nil {
			return nil, err
		}
	}
}

// write writes one file, and appends its description.
func (s *Sandbox) write(r *http.Request, list []written, name string, body io.Reader) ([]written, error) {
	at, err := s.within(name)
	if err != nil {
		return nil, err
	}
	f, err := s.w.Files()
	if err != nil {
		return nil, err
	}
	kept := attributes(r.Header)
	i, err := f.Write(r.Context(), at, body, files.WriteOptions{Attributes: kept})
	if err != nil {
		return nil, err
	}
	return append(list, written{path.Base(i.Path), "file", s.full(i.Path), plainKeys(kept)}), nil
}
