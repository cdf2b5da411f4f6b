package liveview

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
)

//go:generate make -C ../../.. liveview-assets

//go:embed assets
var assets embed.FS

// policy is the content security policy. Pictures of kernels come as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options make the live view.
type Options struct {
	// Version is the program's.
	Version string
	// Cwd is the working directory of sessions that name none. "": a question about a
	// session has to name it.
	Cwd string
	// Vitals are what the overview and the stories of sessions come from. Required.
	Vitals *vitals.Vitals
}

// page is the file that is made from a template, and not served as it is.
const page = "page.html"

// kinds are the content types of the files, by their extension.
var kinds = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// Mounts are the parts of the server: the page and its files for anyone on the loopback
// interface, and what they ask with the token.
func Mounts(o Options) ([]httpserver.Mount, error) {
	made, err := template.ParseFS(assets, "assets/"+page)
	if err != nil {
		return nil, fmt.Errorf("read the page of the live view: %w", err)
	}
	var text bytes.Buffer
	if err := made.Execute(&text, o); err != nil {
		return nil, fmt.Errorf("make the page of the live view: %w", err)
	}
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return nil, fmt.Errorf("read the live view: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.Name() == page {
			continue
		}
		if kinds[path.Ext(e.Name())] == "" {
			return nil, fmt.Errorf("read the live view: %s is of no kind that is served", e.Name())
		}
		if files[e.Name()], err = assets.ReadFile("assets/" + e.Name()); err != nil {
			return nil, fmt.Errorf("read the live view: %w", err)
		}
	}
	return append([]httpserver.Mount{
		public("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { send(w, "text/html; charset=utf-8", text.Bytes()) }),
		public("GET /live/{file}", func(w http.ResponseWriter, r *http.Request) {
			name := r.PathValue("file")
			data, known := files[name]
			if !known {
				httpserver.Error(w, http.StatusNotFound, "not_found", fmt.Sprintf("the live view has no file %.80q", name), "")
				return
			}
			send(w, kinds[path.Ext(name)], data)
		}),
	}, routes(o.Vitals, o.Cwd)...), nil
}

// public is a mount for those who have no token.
func public(pattern string, f http.HandlerFunc) httpserver.Mount {
	return httpserver.Mount{Pattern: pattern, Public: true, Scope: httpserver.Read, Handler: f}
}

// send sends one file of the page.
func send(w http.ResponseWriter, kind string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	_, _ = w.Write(data) // who has gone cannot be told
}
