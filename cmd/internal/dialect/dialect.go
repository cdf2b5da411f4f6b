// Package dialect is what a server of a fleet has to know of a protocol of others, to have
// its requests served by the node that they belong to.
//
// # Guarantees
//
//   - It has no state and starts nothing: a [Dialect] reads requests and answers, and whoever
//     asks it decides.
package dialect

import (
	"net/http"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// Dialect serves workspaces in the words of another protocol. Any goroutine may call its
// methods.
type Dialect interface {
	// Streams reports whether the body of a request and its answer are not to be read ahead.
	Streams(r *http.Request) bool
	// About says what a request is about; body is that of one which does not stream. What it
	// notes in the header of r goes with the request to another node, whose About finds it.
	About(r *http.Request, body []byte) About
	// Refuse answers no in the form of the protocol.
	Refuse(w http.ResponseWriter, r *http.Request, no *httpserver.Refusal)
}

// About is what a request is about. The zero value: nothing that is at one node, so that the
// node which was asked serves it.
type About struct {
	// Workspace is the workspace that it is about.
	Workspace string
	// Makes says that it makes it, unless it is there: once, however often it comes. Begins
	// says that it starts something in it.
	Makes, Begins bool
	// Session is the session that it is about. Makes says that it may begin, and Begins that it
	// starts something. Its answer is not read ahead.
	Session messages.SessionKey
	// Near is the path, with the query, of a question: what the request is about is at the node
	// that answers it with 200. "": it is not looked for.
	Near string
	// Anywhere is by what the node is chosen that serves a request about something that is not
	// there yet, as far as Near says. "": it is the one that was asked. Alike has all nodes choose
	// the same one, whatever there is to do at which.
	Anywhere string
	Alike    bool
	// Holds is a session that is this node's while the request is served. The zero value: none.
	Holds messages.SessionKey
	// Made reads from an answer which sessions, or workspaces, have been made besides. nil: none.
	Made func(answer []byte) []messages.SessionKey
	// Merge makes one answer of those of all nodes. nil: one node serves it.
	Merge func(w http.ResponseWriter, pages []Page)
}

// Page is what one node has answered.
type Page struct {
	Header http.Header
	Body   []byte
}
