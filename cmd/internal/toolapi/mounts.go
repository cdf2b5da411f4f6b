package toolapi

import (
	"net/http"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// Mounts returns the parts of a server that are about tools.
func Mounts(o Options) []httpserver.Mount {
	h := &handler{o: o, began: time.Now()}
	looks := map[string]http.HandlerFunc{
		"GET /api/healthz": h.healthz, "GET /api/launcher/state": h.state, "GET /api/tools": h.list,
		"GET /api/tools/{id}/logs": h.logs, "GET /api/tools/{id}/files/{run}/{name...}": h.file,
	}
	runs := map[string]http.HandlerFunc{
		"GET /api/tools/{id}/validate": h.validate, "POST /api/tools/{id}/validate": h.validate,
		"POST /api/tools/{id}/run": h.run, "POST /api/tools/{id}/stream": h.stream, "POST /api/tools/{id}/cancel": h.cancel,
		"POST /api/tools/{id}/pin": h.pin(true), "POST /api/tools/{id}/unpin": h.pin(false),
		"POST /api/tools/{id}/stop": h.stop, "POST /api/tools/{id}/prewarm": h.prewarm,
		"GET /api/tools/{id}/autocomplete/{endpoint...}": h.autocomplete, // it asks the tool
	}
	mounts := make([]httpserver.Mount, 0, len(looks)+len(runs))
	for need, routes := range map[httpserver.Scope]map[string]http.HandlerFunc{httpserver.Read: looks, httpserver.Run: runs} {
		for pattern, f := range routes {
			mounts = append(mounts, httpserver.Mount{Pattern: pattern, Handler: f, Scope: need})
		}
	}
	return mounts
}
