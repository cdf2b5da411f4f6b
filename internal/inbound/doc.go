// Package inbound keeps the clients of an HTTP server from blocking it: one that
// connects and then says nothing, or only half of something, can neither use up its
// descriptors nor delay its end. Servers on the loopback interface need that, because
// everybody on the machine can reach them.
//
// # Guarantees
//
//   - The head of a request comes within [Limits].Head, and its body within
//     Limits.Body of its first byte; otherwise the connection is closed. Neither cuts
//     an answer: a stream or a long poll may last for as long as it likes, once its
//     request is complete.
//   - A request that is answered before its body has come is answered at once, with
//     Connection: close. What still comes is taken for a moment, so that a client that
//     sends first and reads then gets to its answer, and the connection is closed.
//   - Strangers, the connections whose client has not shown that it may ask
//     ([Known]), are bounded. When there is one too many, the oldest is closed; but
//     each has [patience] to make itself known, so that many clients that come at
//     once all get in.
//   - So are, apart from them, the connections of known clients that the server
//     waits for: for the rest of a request, or for the next one. One whose request is
//     being served is never closed for another.
//   - Each bound is a quarter of the descriptors that the process may have, and at
//     most [maxStrangers]: half of them are left for what the process is for. When
//     they run out all the same, strangers go first.
//   - [Connections.End] lets the server shut down without waiting for any of them.
//
// A server that sends requests on to another one says so ([Relayed]).
//
// # A connection
//
//	accepted ──▶ stranger ──Known──▶ served ◀──────────────┐
//	  │ Unix         │                 │ ▲                  │
//	  └─────────────▶┼──▶ waited for ◀─┘ └─ body has come ──┘ next request
//	                 │       │  answered; its body has not come
//	                 ▼       ▼
//	               closed: too old, too late, End
//
// A Unix socket is this user's alone; a client that uses it is known from the start.
//
// # Who owns what
//
// The goroutines are those of the http.Server. The table of connections has a lock,
// under which nothing waits.
package inbound
