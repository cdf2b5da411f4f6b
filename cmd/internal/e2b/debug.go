package e2b

import (
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
)

// DebugAddrs are where E2B's SDKs look for a sandbox when E2B_DEBUG is set: for its files and
// processes, and for its code.
var DebugAddrs = []string{"127.0.0.1:49983", "127.0.0.1:49999"}

// debugID is the sandbox that the SDKs take for granted then.
const debugID = "debug_sandbox_id"

// Debug serves the one sandbox that E2B's SDKs use when E2B_DEBUG is set, at each of
// [DebugAddrs]. They send no token then, and none is asked for: everyone who reaches the address may
// run code as the user of the server. It is for an address of the loopback interface, and
// for those who have asked for it. Pages of other origins are refused all the same.
//
// The sandbox is made with the first request, and ends with the server, or when it is ended
// as others are; the next request makes a new one then.
func (a *API) Debug() httpserver.Mount {
	return httpserver.Mount{Pattern: "/", Handler: http.HandlerFunc(a.debug), Scope: httpserver.Run, Knows: func(*http.Request, func(string) bool) bool { return true }}
}

func (a *API) debug(w http.ResponseWriter, r *http.Request) {
	if !opensInside(r.URL.Path) {
		answer.Error(w, http.StatusNotFound, "there is nothing at "+r.URL.Path)
		return
	}
	if a.sandbox(debugID) == nil {
		if _, err := a.o.Host.Workspace(r.Context(), debugID, workspace.Options{}); err != nil {
			refuse(w, err)
			return
		}
	}
	// Whatever the client says: no other sandbox is open here.
	r.Header.Set("E2b-Sandbox-Id", debugID)
	a.inside(w, r)
}
