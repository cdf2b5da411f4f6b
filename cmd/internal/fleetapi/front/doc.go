// Package front is a server without sessions, each key of which has a sandbox of its own: it sends
// requests on to those, and has them made ([fleet.Sandboxes]).
//
// # Guarantees
//
//   - A request goes to the sandbox of its key: that of a workspace with all that is in it, or of a
//     session that is in none. It names the life of the server that it is for, so that another one
//     at its address does nothing.
//   - No answer leaves before it is known that the sandbox still had the key after the answer was
//     there; else it is lost. What is streamed is asked for once, before its first part leaves, and
//     cut off when the sandbox is seen to be over.
//   - A request with an epoch that is over is refused before anything is done, and so is one without
//     an epoch that starts something, where the sandbox is known to have had an earlier one.
//   - A request is sent once more only when it surely was not done, when it changes nothing, or when
//     the same life of the server does it once. One that may have been done in an earlier sandbox is
//     not done in a later one.
//   - What a client shows, its token and its cookies, is no sandbox's, and what sandboxes are shown is no
//     client's.
//
// Requests run in the goroutines of the HTTP server; the package has none.
package front
