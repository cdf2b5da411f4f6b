// Package bridge is the endpoint through which the code in a Jupyter kernel
// calls its host: HTTP on a loopback address or, for code without a network, on a socket with a
// path; one token for each session.
//
// # Guarantees
//
//   - It listens on 127.0.0.1 or on that socket, and nowhere else. A request without the token of a session
//     that is registered is refused, and tokens are compared in constant time.
//   - A call reaches the function that its session registered, and no other.
//   - A request that does not come whole is waited for as long as package inbound
//     says, and requests without a token do not keep out those that have one.
//   - When the caller hangs up, the context of its call ends.
//   - Close refuses new requests, ends the running ones and returns when none
//     runs.
//
// # The wire form
//
// POST /v1/tool with "Authorization: Bearer TOKEN" and a JSON object:
//
//	{"session": ID, "run": any text, "name": …, "args": {…}, "kind": "tool" | "primitive" | "functions"}
//
// kind may be left out: it is tool then. The answer has status 200 and is
// {"ok":true,"value":…} or {"ok":false,"error":…,"error_type":…}. Requests that are
// not calls get 400, 403 or 404 in the same form.
//
// # Life of a session
//
//	Register ──▶ served ──Unregister──▶ refused
//
// Any goroutine may use a Server.
package bridge
