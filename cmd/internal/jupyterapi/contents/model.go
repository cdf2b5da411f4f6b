package contents

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/workspace/files"
)

// The types of what is at a path, and the formats of its content.
const (
	typeFile, typeNotebook, typeDirectory = "file", "notebook", "directory"
	formatText, formatBase64, formatJSON  = "text", "base64", "json"
)

// model is what is at a path, for clients.
type model struct {
	Name      string  `json:"name"`
	Path      string  `json:"path"`
	Modified  string  `json:"last_modified"`
	Created   string  `json:"created"` // as Modified: not every file system knows
	Content   any     `json:"content"` // null unless it was asked for
	Format    *string `json:"format"`
	Mime      *string `json:"mimetype"`
	Size      *int64  `json:"size"`
	Writable  bool    `json:"writable"`
	Type      string  `json:"type"`
	Hash      *string `json:"hash,omitempty"`
	Algorithm *string `json:"hash_algorithm,omitempty"`
}

// stamp is a time as Jupyter writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// escaped is a path as a part of an address.
func escaped(at string) string { return (&url.URL{Path: at}).EscapedPath() }

// base is the last element of a path.
func base(at string) string {
	if at == "" {
		return ""
	}
	return path.Base(at)
}

// isNotebook reports whether a file is one by its name.
func isNotebook(at string) bool { return strings.HasSuffix(at, ".ipynb") }

// describe makes the model of what is at a path, without its content.
func describe(at string, i files.Info) model {
	m := model{Name: base(at), Path: at, Modified: stamp(i.Modified), Created: stamp(i.Modified), Writable: i.Mode&0o200 != 0, Type: typeFile}
	switch {
	case i.Kind == files.KindDirectory:
		m.Type = typeDirectory
		return m
	case isNotebook(at):
		m.Type = typeNotebook
	default:
		if kind, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(at)), ";"); kind != "" {
			m.Mime = &kind
		}
	}
	m.Size = &i.Size
	return m
}

// stat describes what is at a path, a symbolic link as what it leads to.
func stat(folder *files.Folder, at string) (files.Info, error) {
	i, err := folder.Stat(at)
	if err != nil || i.Kind != files.KindLink {
		return i, err
	}
	r, err := folder.Open(at)
	if err == nil {
		i = r.Info()
		return i, r.Close()
	}
	if errors.Is(err, files.ErrIsDir) {
		i.Kind = files.KindDirectory
		return i, nil
	}
	return i, err
}

// get answers with what is at a path.
func get(r request) (answer, error) {
	i, err := stat(r.folder, r.at)
	if err != nil {
		return answer{}, err
	}
	q := r.URL.Query()
	kind, content := q.Get("type"), q.Get("content") != "0"
	m := describe(r.at, i)
	switch {
	case kind != "" && kind != typeFile && kind != typeNotebook && kind != typeDirectory:
		return answer{}, &problem{http.StatusBadRequest, "Type " + quoted(kind) + " is invalid", ""}
	case m.Type == typeDirectory && kind != "" && kind != typeDirectory:
		return answer{}, &problem{http.StatusBadRequest, quoted(r.at) + " is a directory, not a " + kind, "bad type"}
	case m.Type != typeDirectory && kind == typeDirectory:
		return answer{}, &problem{http.StatusBadRequest, quoted(r.at) + " is not a directory", "bad type"}
	case m.Type == typeDirectory:
		if content {
			err = fillDirectory(r, &m)
		}
		return answer{status: http.StatusOK, body: m}, err
	}
	if i.Kind != files.KindFile {
		return answer{}, &problem{http.StatusBadRequest, quoted(r.at) + " is not a regular file", ""}
	}
	if kind != "" {
		m.Type = kind
	}
	if content || q.Get("hash") == "1" {
		err = fillFile(r, &m, q.Get("format"), content, q.Get("hash") == "1")
	}
	return answer{status: http.StatusOK, body: m}, err
}

// fillDirectory lists what is in a directory.
func fillDirectory(r request, m *model) error {
	list, _, err := r.folder.List(r.Context(), r.at, files.ListOptions{})
	if err != nil {
		return err
	}
	models := []model{}
	for _, i := range list {
		if !listed(path.Base(i.Path)) {
			continue
		}
		if i.Kind == files.KindLink {
			if i, err = stat(r.folder, i.Path); err != nil {
				continue // it leads nowhere, or out of the folder
			}
			i.Path = path.Join(r.at, path.Base(i.Path))
		}
		if i.Kind == files.KindFile || i.Kind == files.KindDirectory {
			models = append(models, describe(i.Path, i))
		}
	}
	format := formatJSON
	m.Content, m.Format = models, &format
	return nil
}

// listed reports whether a name is one that people look for.
func listed(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, "~") && !strings.HasSuffix(name, ".pyc") && name != "__pycache__"
}

// fillFile reads a file, for its content or its hash.
func fillFile(r request, m *model, format string, content, hash bool) error {
	data, err := r.folder.Read(r.Context(), r.at, most)
	if err != nil {
		return err
	}
	if hash {
		sum := sha256.Sum256(data)
		value, algorithm := hex.EncodeToString(sum[:]), "sha256"
		m.Hash, m.Algorithm = &value, &algorithm
	}
	if !content {
		return nil
	}
	if m.Type == typeNotebook {
		notebook, err := joined(data)
		if err != nil {
			return &problem{http.StatusBadRequest, fmt.Sprintf("Unreadable Notebook: %s: %v", quoted(r.at), err), ""}
		}
		format = formatJSON
		m.Content, m.Format, m.Mime = json.RawMessage(notebook), &format, nil
		return nil
	}
	text := utf8.Valid(data)
	switch {
	case format == "" && text:
		format = formatText
	case format == "":
		format = formatBase64
	case format == formatText && !text:
		return &problem{http.StatusBadRequest, quoted(r.at) + " is not UTF-8 encoded", "bad format"}
	case format != formatText && format != formatBase64:
		return &problem{http.StatusBadRequest, "Format " + quoted(format) + " is invalid", ""}
	}
	kind := "text/plain"
	if format == formatText {
		m.Content = string(data)
	} else {
		m.Content, kind = base64.StdEncoding.EncodeToString(data), "application/octet-stream"
	}
	m.Format = &format
	if m.Mime == nil {
		m.Mime = &kind
	}
	return nil
}

// download answers with the bytes of a file. A page that is one may do nothing here: it has
// the origin of the server.
func (c *Contents) download(w http.ResponseWriter, r *http.Request) {
	at := strings.Trim(r.PathValue("path"), "/")
	err := visible(at)
	var folder *files.Folder
	if err == nil {
		folder, err = c.open()
	}
	var f *files.Reader
	if err == nil {
		f, err = folder.Open(at)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	header := w.Header()
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": base(at)}))
	header.Set("Content-Security-Policy", "sandbox")
	header.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, base(at), f.Info().Modified, f)
}

// missing reports whether nothing is at a path.
func missing(folder *files.Folder, at string) (bool, error) {
	_, err := folder.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}
