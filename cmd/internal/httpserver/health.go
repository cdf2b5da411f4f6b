package httpserver

import (
	"net/http"
	"sync/atomic"
)

// leaving says that a server is about to end.
type leaving struct{ atomic.Bool }

// mounts are the two questions that every server answers without the token, for what
// watches over processes: is it alive, and does it take requests. They say that and
// nothing else.
//
//	GET /healthz   200 as long as the server answers at all
//	GET /readyz    503 from the moment that it is asked to end, and while may says no
func (l *leaving) mounts(may func() bool) []Mount {
	alive := func(w http.ResponseWriter, _ *http.Request) { JSON(w, http.StatusOK, map[string]bool{"ok": true}) }
	ready := func(w http.ResponseWriter, _ *http.Request) {
		if l.Load() || may != nil && !may() {
			JSON(w, http.StatusServiceUnavailable, map[string]bool{"ok": false})
			return
		}
		JSON(w, http.StatusOK, map[string]bool{"ok": true})
	}
	return []Mount{
		{Pattern: "GET /healthz", Handler: http.HandlerFunc(alive), Public: true, Scope: Read, own: true},
		{Pattern: "GET /readyz", Handler: http.HandlerFunc(ready), Public: true, Scope: Read, own: true},
	}
}
