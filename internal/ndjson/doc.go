// Package ndjson is the wire format between the host and the interpreters of
// the runner backend: one JSON object on one line, over private descriptors.
// PROTOCOL.md says what the frames mean; this package says what they look like.
//
// # Guarantees
//
//   - [Reader] holds at most one line, and no more than its limit of it. A line
//     that is longer is skipped and reported as a [*TooLongError]; the next one is
//     read as usual.
//   - A Reader that was interrupted by a deadline goes on where it was.
//   - [ParseFrame] never panics, and a frame that it cannot read costs that
//     frame alone.
//   - [AppendRequest] refuses what the interpreter would refuse, before it is
//     sent.
//
// A Reader belongs to one goroutine. The functions may be called from any.
package ndjson
