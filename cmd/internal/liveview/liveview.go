package liveview

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

//go:embed assets
var assets embed.FS

// policy is the content security policy. Pictures of kernels come as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Mounts are the parts of the server. version is the program's.
func Mounts(version string) ([]httpserver.Mount, error) {
	page, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the page of the live view: %w", err)
	}
	var text bytes.Buffer
	if err := page.Execute(&text, struct{ Version string }{version}); err != nil {
		return nil, fmt.Errorf("make the page of the live view: %w", err)
	}
	mounts := []httpserver.Mount{file("GET /{$}", "text/html; charset=utf-8", text.Bytes())}
	for name, kind := range map[string]string{"live.js": "text/javascript; charset=utf-8", "live.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("read the live view: %w", err)
		}
		mounts = append(mounts, file("GET /live/"+name, kind, data))
	}
	return mounts, nil
}

// file serves one file to who has no token.
func file(pattern, kind string, data []byte) httpserver.Mount {
	return httpserver.Mount{Pattern: pattern, Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		_, _ = w.Write(data) // who has gone cannot be told
	})}
}
