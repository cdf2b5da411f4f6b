package toolapi

import (
	"mime"
	"net/http"
	"path"
)

func (h *handler) autocomplete(w http.ResponseWriter, r *http.Request) {
	list, err := h.o.Tools.Autocomplete(r.Context(), r.PathValue("id"), r.PathValue("endpoint"), r.URL.Query().Get("q"))
	if err != nil {
		problem(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(list) // who has gone cannot be told
}

// file sends a file of a run, in parts if that is asked for. A browser saves it:
// what a tool writes is no page of this server.
func (h *handler) file(w http.ResponseWriter, r *http.Request) {
	f, err := h.o.Tools.OpenFile(r.Context(), r.PathValue("id"), r.PathValue("run"), r.PathValue("name"))
	if err != nil {
		problem(w, err)
		return
	}
	defer func() { _ = f.Close() }()
	header := w.Header()
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(f.Name)}))
	header.Set("Content-Security-Policy", "sandbox")
	if f.ContentType == "" {
		f.ContentType = "application/octet-stream"
	}
	header.Set("Content-Type", f.ContentType)
	http.ServeContent(w, r, "", f.ModTime, f)
}
