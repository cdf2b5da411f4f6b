package client

import "net/http"

// What the headers of an answer say of the server: which life of its process it is, of which "?"
// in a request asks, and which node of a fleet.
const (
	headerServer = "Coppice-Server"
	headerNode   = "Coppice-Node"
)

// lifeOf is the life of the server that has answered; "": it does not say, or is a fleet, which
// has nodes in place of lives.
func lifeOf(header http.Header) string {
	if header.Get(headerNode) != "" {
		return ""
	}
	return header.Get(headerServer)
}
