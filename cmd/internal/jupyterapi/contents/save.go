package contents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/workspace/files"
)

// wish is what a client sends of a file.
type wish struct {
	Path    *string         `json:"path"`
	Type    string          `json:"type"`
	Format  string          `json:"format"`
	Content json.RawMessage `json:"content"`
	Chunk   *int            `json:"chunk"` // from 1; -1 is the last
	Ext     string          `json:"ext"`
	CopyOf  string          `json:"copy_from"`
}

// saved answers with what was saved, without its content.
func saved(r request, status int, at string) (answer, error) {
	i, err := stat(r.folder, at)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: status, body: describe(at, i)}
	if status == http.StatusCreated {
		a.location = at
	}
	return a, nil
}

// save makes what a client has the content of a path.
func save(r request) (answer, error) {
	var o wish
	if err := r.read(&o); err != nil {
		return answer{}, err
	}
	status := http.StatusOK
	if fresh, err := missing(r.folder, r.at); err != nil {
		return answer{}, err
	} else if fresh {
		status = http.StatusCreated
	}
	if o.Type == typeDirectory {
		if dir := path.Dir(r.at); dir != "." {
			if _, err := stat(r.folder, dir); err != nil {
				return answer{}, err
			}
		}
		if _, err := r.folder.MakeDir(r.at, 0); err != nil {
			return answer{}, err
		}
		return saved(r, status, r.at)
	}
	data, err := o.data()
	if err != nil {
		return answer{}, err
	}
	if o.Chunk != nil {
		whole, last, err := r.c.piece(r.at, *o.Chunk, data)
		if err != nil {
			return answer{}, err
		}
		if !last {
			return answer{status: status, body: model{Name: base(r.at), Path: r.at, Writable: true, Type: o.Type}}, nil
		}
		data = whole
	}
	if _, err = r.folder.WriteBytes(r.Context(), r.at, data, files.WriteOptions{NoParents: true}); err != nil {
		return answer{}, err
	}
	return saved(r, status, r.at)
}

// data is what is to be written.
func (o wish) data() ([]byte, error) {
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, &problem{http.StatusBadRequest, fmt.Sprintf(format, args...), ""}
	}
	if len(o.Content) == 0 || string(o.Content) == "null" {
		return bad("No file content provided")
	}
	switch o.Type {
	case typeNotebook:
		data, err := split(o.Content)
		if err != nil {
			return bad("the content is no notebook: %v", err)
		}
		return data, nil
	case typeFile:
	case "":
		return bad("No file type provided")
	default:
		return bad("Unhandled contents type: %.80q", o.Type)
	}
	var text string
	if err := json.Unmarshal(o.Content, &text); err != nil {
		return bad("the content of a file is a string")
	}
	switch o.Format {
	case formatText:
		return []byte(text), nil
	case formatBase64:
		data, err := base64.StdEncoding.DecodeString(strings.Map(visibleRune, text))
		if err != nil {
			return bad("the content is not base64: %v", err)
		}
		return data, nil
	default:
		return bad("Must specify format of file contents as 'text' or 'base64'")
	}
}

// visibleRune drops line ends, which some clients put in.
func visibleRune(r rune) rune {
	if r == '\n' || r == '\r' || r == ' ' {
		return -1
	}
	return r
}

// upload is a file that comes in pieces.
type upload struct {
	at   string
	next int // the number of the next piece
	data []byte
}

// piece takes a piece of a file, and returns all of it with the last one.
func (c *Contents) piece(at string, number int, data []byte) (whole []byte, last bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, files.ErrClosed
	}
	u, held, kept := &upload{at: at, next: 1}, len(data), c.parts[:0:0]
	for _, p := range c.parts {
		if p.at == at {
			if number != 1 {
				u = p
			}
			continue
		}
		kept = append(kept, p)
		held += len(p.data)
	}
	if number != u.next && (number != -1 || u.next == 1) {
		return nil, false, &problem{http.StatusBadRequest, fmt.Sprintf("piece %d of %s does not follow what has come; begin with 1", number, quoted(at)), ""}
	}
	for held += len(u.data); held > most; kept = kept[1:] {
		if len(kept) == 0 {
			c.parts = kept
			return nil, false, &problem{http.StatusRequestEntityTooLarge, fmt.Sprintf("%s is larger than %d bytes", quoted(at), most), ""}
		}
		held -= len(kept[0].data)
	}
	u.data, u.next = append(u.data, data...), u.next+1
	if number == -1 {
		c.parts = kept
		return u.data, true, nil
	}
	kept = append(kept, u)
	c.parts = kept
	return nil, false, nil
}

// create makes something new in a directory: of a type, or a copy.
func create(r request) (answer, error) {
	o := wish{}
	if err := r.read(&o); err != nil {
		return answer{}, err
	}
	i, err := stat(r.folder, r.at)
	if err != nil {
		return answer{}, err
	}
	if i.Kind != files.KindDirectory {
		return answer{}, &problem{http.StatusBadRequest, "Cannot POST to files, use PUT instead.", ""}
	}
	var at string
	switch {
	case o.CopyOf != "":
		at, err = copied(r, strings.Trim(o.CopyOf, "/"))
	case o.Type == typeDirectory:
		at, err = untitled(r, "Untitled Folder", "", " ", func(at string) error {
			fresh, err := missing(r.folder, at)
			if err == nil && !fresh {
				err = fs.ErrExist
			}
			if err == nil {
				_, err = r.folder.MakeDir(at, 0)
			}
			return err
		})
	case o.Type == typeNotebook, o.Type == "" && o.Ext == ".ipynb":
		at, err = untitled(r, "Untitled", ".ipynb", "", func(at string) error { return write(r, at, emptyNotebook) })
	default:
		if err = visible(o.Ext[min(1, len(o.Ext)):]); err != nil || strings.ContainsAny(o.Ext, `/\`) {
			return answer{}, &problem{http.StatusBadRequest, "ext is not the end of a name", ""}
		}
		at, err = untitled(r, "untitled", o.Ext, "", func(at string) error { return write(r, at, nil) })
	}
	if err != nil {
		return answer{}, err
	}
	return saved(r, http.StatusCreated, at)
}

// write makes a file, which must not be there.
func write(r request, at string, data []byte) error {
	_, err := r.folder.Write(r.Context(), at, bytes.NewReader(data), files.WriteOptions{New: true, NoParents: true})
	return err
}

// untitled makes something under the first name that is free.
func untitled(r request, name, ext, between string, with func(at string) error) (string, error) {
	const enough = 10_000
	for n := range enough {
		number := ""
		if n > 0 {
			number = between + strconv.Itoa(n)
		}
		at := path.Join(r.at, name+number+ext)
		if err := with(at); !errors.Is(err, fs.ErrExist) {
			return at, err
		}
	}
	return "", fmt.Errorf("find a name that is free: %w", fs.ErrExist)
}

// copySuffix is at the end of the names of copies.
var copySuffix = regexp.MustCompile(`-Copy\d*$`)

// copied copies a file into the directory.
func copied(r request, from string) (string, error) {
	if err := visible(from); err != nil {
		return "", err
	}
	ext := path.Ext(from)
	name := copySuffix.ReplaceAllString(strings.TrimSuffix(base(from), ext), "")
	first := true
	put := func(at string) error {
		in, err := r.folder.Open(from)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }() // it was only read
		_, err = r.folder.Write(r.Context(), at, in, files.WriteOptions{Mode: in.Info().Mode, New: true, NoParents: true})
		return err
	}
	return untitled(r, name, ext, "-Copy", func(at string) error {
		if first { // a copy is named one, unless it goes to another directory
			first = false
			if path.Dir(at) == path.Dir(path.Join(".", from)) {
				return fs.ErrExist
			}
		}
		return put(at)
	})
}

// rename gives something another path.
func rename(r request) (answer, error) {
	var o wish
	if err := r.read(&o); err != nil {
		return answer{}, err
	}
	if o.Path == nil {
		return answer{}, &problem{http.StatusBadRequest, "Missing field in JSON data: path", ""}
	}
	to := strings.Trim(*o.Path, "/")
	if err := visible(to); err != nil {
		return answer{}, err
	}
	if to != r.at {
		if _, err := r.folder.Move(r.at, to, files.MoveOptions{}); err != nil {
			return answer{}, err
		}
		moveCheckpoint(r, to)
	}
	return saved(r, http.StatusOK, to)
}

// remove removes what is at a path.
func remove(r request) (answer, error) {
	i, err := r.folder.Stat(r.at)
	if err != nil {
		return answer{}, err
	}
	if i.Kind == files.KindDirectory {
		list, _, err := r.folder.List(r.Context(), r.at, files.ListOptions{Most: 2})
		if err != nil {
			return answer{}, err
		}
		if len(list) == 1 && path.Base(list[0].Path) == checkpointFolder {
			if err := r.folder.Remove(list[0].Path, true); err != nil {
				return answer{}, err
			}
		}
	}
	if err := r.folder.Remove(r.at, false); err != nil {
		return answer{}, err
	}
	if i.Kind != files.KindDirectory {
		_ = r.folder.Remove(checkpointOf(r.at), false) // there need not be one
	}
	return answer{status: http.StatusNoContent}, nil
}
