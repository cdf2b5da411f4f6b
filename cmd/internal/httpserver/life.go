package httpserver

import (
	"crypto/rand"
	"net/http"
)

// HeaderServer names one life of a server's process. A request that has it is served by that
// life and by no other: who sends requests on to an address learns that another process answers
// there by now, before anything is done. The answer says which one it is. [AnyServer] in its place
// only asks.
const HeaderServer = "Coppice-Server"

// AnyServer is the value of [HeaderServer] in a request that any life of the server may serve.
const AnyServer = "?"

// life names this one. All servers of a process have it: it ends with the process.
var life = rand.Text()

// elsewhere is why a request is not for this life of the server; nil: it is, or does not say. An
// answer to who asks says which life this is.
func elsewhere(w http.ResponseWriter, r *http.Request) *Refusal {
	values := r.Header.Values(HeaderServer)
	if len(values) == 0 {
		return nil
	}
	w.Header().Set(HeaderServer, life)
	if len(values) == 1 && (values[0] == life || values[0] == AnyServer) {
		return nil
	}
	return &Refusal{Status: http.StatusGone, Problem: Problem{
		Code: "lost", Message: "the request is for another life of this server: nothing was done", Hint: "what that one had in memory is gone",
	}}
}
