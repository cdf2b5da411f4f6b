// Package httpapi is the part of coppice serve that is about sessions. openapi.json
// in this folder describes each route and each answer of the server, those of the
// tools, the workspaces and the live view too; the tests hold it true, and GET /api/openapi.json
// serves it. Package client is its client.
//
//	GET    /api/health                          how the server is
//	GET    /api/tree                            the supervision tree
//	GET    /api/changes                         what happens in it, as server-sent events
//	GET    /api/events                          what happened, page by page
//	GET    /api/sessions                        the sessions that have a kernel
//	POST   /api/sessions                        gives a session a kernel
//	GET    /api/sessions/{session}              one of them
//	DELETE /api/sessions/{session}              closes it
//	POST   /api/sessions/{session}/{interrupt,reset,pin,unpin,fork}
//	POST   /api/sessions/{session}/checkpoint   keeps its state
//	POST   /api/sessions/{session}/rewind       puts it back to one that was kept
//	POST   /api/sessions/{session}/save         keeps it on disk, under a name
//	POST   /api/sessions/{session}/restore      has it go on from what is kept under a name
//	POST   /api/sessions/{session}/{complete,inspect}   what its idle kernel knows of code
//	GET    /api/sessions/{session}/notebook     what it executed, as .ipynb
//	GET    /api/checkpoints                     those that are kept
//	DELETE /api/checkpoints/{id}                drops one
//	GET    /api/saved-checkpoints               those on disk
//	DELETE /api/saved-checkpoints/{name}        drops one
//	GET    /api/executions[?filter=WORDS&outcome=]   those that run, and the last that ended
//	POST   /api/executions                      starts one
//	GET    /api/executions/{id}[?wait=SECONDS]  one of them, with its result
//	GET    /api/executions/{id}/events          its events: server-sent, or over a WebSocket
//	POST   /api/executions/{id}/{input,cancel}
//	GET    /api/artifacts[/{id}]                outputs that were kept, by ranges of bytes or lines
//	POST   /api/notebooks/{show,apply,run}
//	GET    /metrics                             for Prometheus
//
// # Guarantees
//
//   - An execution belongs to the server, not to the request that started it: a
//     client may leave and come back. Executions of one session that are started
//     one after the other run in that order. An id runs once: who starts it again
//     gets the one that there is.
//   - The events of an execution are numbered from 1 without a gap. A reader that
//     names the last number it saw (Last-Event-ID, or ?after=) gets each later
//     event once. They are kept in memory up to a bound and in a file beyond; past
//     256 MiB output is left out of the log, and a notice in it says so.
//   - A reader that is slow holds no one back.
//   - Bodies are bounded, are JSON of the documented members and no others, and
//     are read within a minute. Nothing is looked up by a path that a client made,
//     but for notebooks, which are files of the user whose token it is.
//   - [API.Close] cancels what runs, and returns when it has ended.
//
// # An execution
//
//	POST ──▶ refused (400, 422, 503)
//	  └────▶ running ──events──▶ running
//	            │  cancel, the session's end
//	            └──final──▶ ended ──newer ones, a day──▶ forgotten
//
// # Who owns what
//
// Each execution has one goroutine, which the API starts and Close joins; it alone
// writes the execution's log. The table of executions has a lock. Handlers run in
// the goroutines of the HTTP server.
//
// The package authenticates no one: mount it behind httpserver.
package httpapi
