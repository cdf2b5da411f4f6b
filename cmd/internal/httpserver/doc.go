// Package httpserver is the HTTP server of coppice serve: one mux with mounts,
// on the loopback interface, behind one token.
//
// # Guarantees
//
//   - It listens on a loopback address and refuses any other.
//   - Nothing is answered without the token (Authorization: Bearer ...), nor to
//     a request whose Host is no loopback name, nor to a page of another origin:
//     a browser cannot be led here.
//   - [Server.Serve] returns when its context has ended and every request has,
//     or was cut off after a grace. Requests see the end in their own context.
//   - The file that tells other commands of the server is readable by its user
//     alone, and is removed at the end.
package httpserver
