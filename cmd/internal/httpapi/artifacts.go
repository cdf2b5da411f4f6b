package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/sinks/artifact"
)

// maxLines bounds what is read of an artifact by lines, in bytes.
const maxLines = 1 << 20

func (a *API) artifacts(w http.ResponseWriter, r *http.Request) {
	infos, err := a.o.Host.Artifacts().List()
	if err != nil && !errors.Is(err, artifact.ErrNoDirectory) {
		a.problem(w, err)
		return
	}
	list := []client.Artifact{}
	for _, i := range infos {
		list = append(list, client.Artifact{ID: i.ID, URI: i.URI(), Bytes: i.Bytes, Modified: i.Modified})
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"artifacts": list})
}

// artifact answers with the bytes of one, or a range of them (Range), or with
// lines as JSON (?first=, ?last=). It is named by its number alone, so that no
// path can be made of the name.
func (a *API) artifact(w http.ResponseWriter, r *http.Request) {
	text := r.PathValue("id")
	id, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange) && strings.Trim(text, "0123456789") == "" && text[0] != '0':
		a.problem(w, fmt.Errorf("no artifact has so large a number: %w", errNotFound))
		return
	case err != nil || id < 0 || strconv.Itoa(id) != text:
		a.problem(w, badRequest{fmt.Sprintf("%.40q is no number of an artifact", text), "GET /api/artifacts lists them"})
		return
	}
	if query := r.URL.Query(); query.Has("first") || query.Has("last") {
		a.lines(w, r, id)
		return
	}
	f, err := a.o.Host.Artifacts().Open(artifact.URI(id))
	if err != nil {
		a.problem(w, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.problem(w, err)
		return
	}
	if filepath.Ext(f.Name()) == ".log" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // code wrote it
	http.ServeContent(w, r, "", info.ModTime(), f)
}

func (a *API) lines(w http.ResponseWriter, r *http.Request, id int) {
	at := artifact.Range{MaxBytes: maxLines}
	for name, to := range map[string]*int64{"first": &at.First, "last": &at.Last} {
		n, _, err := httpserver.Number(r, name, 1)
		if err != nil {
			a.problem(w, badRequest{err.Error(), "lines are numbered from 1"})
			return
		}
		*to = n
	}
	part, err := a.o.Host.Artifacts().ReadLines(artifact.URI(id), at)
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.Answer(w, r, http.StatusOK, map[string]any{"first": part.First, "last": part.Last, "more": part.More, "text": string(part.Text)})
}
