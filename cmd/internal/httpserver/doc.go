// Package httpserver is the guarded HTTP server of coppice serve and of coppice mcp:
// one mux with mounts, on the loopback interface, behind one token, or beyond it, behind many.
//
// # Guarantees
//
//   - It listens on a loopback address and refuses any other, unless [Options.Beyond] has a
//     certificate for that: then TLS alone is spoken, and the names of the certificate stand for
//     those of the loopback interface in what follows.
//   - With [Options.Entry] there are many tokens, each with a [Scope]: a mount that
//     declares one is answered to those who have it, and one that declares none to nobody. When
//     a token opens nothing any more, the requests that it let in end.
//   - Nothing is answered without the token (Authorization: Bearer ...), nor to
//     a request whose Host is no loopback name, nor to a page of another origin:
//     a browser cannot be led here. The names of the loopback interface are one
//     origin when their ports are one.
//   - Whoever has no token cannot keep out who has: a request is refused before its
//     body has come, the connection is closed, and connections that have shown no
//     token are few. Package inbound has the times and the bounds. No answer is cut
//     by them.
//   - [Server.Serve] returns when its context has ended and every request has,
//     or was cut off after a grace. Requests see the end in their own context. A
//     request that has not come whole by then is not waited for.
//   - The file that tells other commands of the server is readable by its user
//     alone, and is removed at the end.
package httpserver
