// Package sse reads and writes server-sent events: the text/event-stream of the
// HTML standard. It is line-safe: however the bytes are cut on their way, an event
// comes whole or not at all; and whatever the data of an event hold, they are its
// data and nothing else.
//
// A [Reader] belongs to one goroutine; a [Writer] may be used by any.
package sse
