package workspaceapi

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace/files"
)

// maxEntries bounds a listing.
const maxEntries = files.DefaultMost

// tag is the ETag of a file: two versions that differ in size or in the time of their
// last change have different ones. "" for what is no file.
func tag(i files.Info) string {
	if i.Kind != files.KindFile {
		return ""
	}
	return fmt.Sprintf(`"%x-%x"`, i.Size, i.Modified.UnixNano())
}

// entry is what a client is told of what stands at a path.
func entry(i files.Info) client.File {
	return client.File{Path: i.Path, Kind: client.FileKind(i.Kind), Size: i.Size, Mode: fmt.Sprintf("%04o", i.Mode.Perm()), Modified: i.Modified, Target: i.Target, ETag: tag(i), NotUTF8: !utf8.ValidString(i.Path)}
}

// read answers with the content of a file, or ranges of it.
func (h *handler) read(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, "")
	if err != nil {
		return err
	}
	leave, err := at.w.Enter()
	if err != nil {
		return err
	}
	defer leave()
	f, err := at.files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'") // code wrote it
	header.Set("ETag", tag(f.Info()))
	header.Set("X-File-Mode", entry(f.Info()).Mode)
	http.ServeContent(w, r, "", f.Info().Modified, f)
	return nil
}

// remove removes what stands at a path.
func (h *handler) remove(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, "")
	if err != nil {
		return err
	}
	all, err := flag(r, "all")
	if err != nil {
		return err
	}
	if err := at.files.Remove(name, all); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// stat describes what stands at a path.
func (h *handler) stat(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, ".")
	if err != nil {
		return err
	}
	info, err := at.files.Stat(name)
	if err != nil {
		return err
	}
	httpserver.JSON(w, http.StatusOK, entry(info))
	return nil
}

// entries lists a directory.
func (h *handler) entries(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, ".")
	if err != nil {
		return err
	}
	depth, err := number(r, "depth", -1, maxEntries, 1)
	if err != nil {
		return err
	}
	most, err := number(r, "most", 1, maxEntries, maxEntries)
	if err != nil {
		return err
	}
	list, more, err := at.files.List(r.Context(), name, files.ListOptions{Depth: int(depth), Most: int(most)})
	if err != nil {
		return err
	}
	told := client.Files{Files: make([]client.File, len(list)), More: more}
	for i, info := range list {
		told.Files[i] = entry(info)
	}
	httpserver.Answer(w, r, http.StatusOK, told)
	return nil
}

// modes are permission bits as they are written in octal.
var modes = regexp.MustCompile(`^0?[0-7]{3}$`)

// mode reads permission bits; where none are given it is 0, for the default.
func mode(text string, given bool) (uint32, error) {
	if !given {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || !modes.MatchString(text) {
		return 0, bad("", "mode must be three digits from 0 to 7, such as 644, not %.40q", text)
	}
	return uint32(n), nil
}

// makeDir makes a directory, with those above it.
func (h *handler) makeDir(w http.ResponseWriter, r *http.Request, at place) error {
	var in struct {
		Path string  `json:"path"`
		Mode *string `json:"mode,omitempty"`
	}
	if !body(w, r, &in) {
		return nil
	}
	if err := checkPath("path", in.Path); err != nil {
		return err
	}
	text := ""
	if in.Mode != nil {
		text = *in.Mode
	}
	bits, err := mode(text, in.Mode != nil)
	if err != nil {
		return err
	}
	info, err := at.files.MakeDir(in.Path, permissions(bits))
	if err != nil {
		return err
	}
	httpserver.JSON(w, http.StatusOK, entry(info))
	return nil
}

// move gives something another name.
func (h *handler) move(w http.ResponseWriter, r *http.Request, at place) error {
	var in struct {
		From    string `json:"from"`
		To      string `json:"to"`
		Replace bool   `json:"replace,omitempty"`
	}
	if !body(w, r, &in) {
		return nil
	}
	if err := checkPath("from", in.From); err != nil {
		return err
	}
	if err := checkPath("to", in.To); err != nil {
		return err
	}
	info, err := at.files.Move(in.From, in.To, files.MoveOptions{Replace: in.Replace})
	if err != nil {
		return err
	}
	httpserver.JSON(w, http.StatusOK, entry(info))
	return nil
}

// write writes a file from the body of a request.
func (h *handler) write(w http.ResponseWriter, r *http.Request, at place) error {
	name, err := path(r, "")
	if err != nil {
		return err
	}
	text, given, err := one(r, "mode")
	if err != nil {
		return err
	}
	bits, err := mode(text, given)
	if err != nil {
		return err
	}
	o := files.WriteOptions{Mode: permissions(bits)}
	switch none := r.Header.Values("If-None-Match"); {
	case len(none) == 0:
	case len(none) == 1 && none[0] == "*":
		o.New = true
	default:
		return bad("send * to write only where nothing is", "If-None-Match must be *")
	}
	up, done, err := h.receive(w, r, at, r.ContentLength)
	if err != nil {
		return err
	}
	defer done()
	if match := r.Header.Values("If-Match"); len(match) > 0 {
		up.landing = h.landing.of(at.files, name, strings.Join(match, ","))
		if err := up.landing.matches(); err != nil {
			return err
		}
	}
	info, err := at.files.Write(r.Context(), name, up, o)
	if err != nil {
		return err
	}
	told := entry(info)
	w.Header().Set("ETag", told.ETag)
	w.Header().Set("Last-Modified", info.Modified.UTC().Format(http.TimeFormat))
	httpserver.Answer(w, r, http.StatusOK, told)
	return nil
}
