// Package toolapi is the part of coppice serve that is about tools. Its client is that
// of package client.
//
//	GET  /api/healthz                     uptime and the warm tools
//	GET  /api/tools                       the tools of the folder
//	GET  /api/tools/{id}/validate         the twelve checks
//	POST /api/tools/{id}/run              {"inputs", "run_id", "timeout_seconds"}: the result
//	POST /api/tools/{id}/stream           the same, as server-sent events
//	POST /api/tools/{id}/cancel?run_id=   ends a run early
//	POST /api/tools/{id}/{pin,unpin,stop,prewarm}
//	GET  /api/tools/{id}/logs?limit=N     the last lines of standard error
//	GET  /api/tools/{id}/autocomplete/{endpoint}?q=   suggestions for an input, as the tool gives them
//	GET  /api/tools/{id}/files/{run}/{name}   a file that a run has left
//	GET  /api/launcher/state              everything; in developer mode only
//
// The answer to run is a messages.ToolResult whatever became of the run; the
// status says it too: 200 ok, 404 no such tool, 422 inputs, 409 cancelled, 502
// the tool failed, 503 overloaded or ending, 504 the time of a run, 507 its
// memory or its files. Other errors are {"error": {"code", "message", "hint"}}.
//
// A stream has an event "output" with a messages.ToolEvent for each part, and
// one event "done" with the result at its end. A client that leaves cancels the
// run.
//
// The OpenAPI document of package httpapi describes these routes too, and its tests
// hold it true.
//
// The package authenticates no one: mount it behind httpserver.
package toolapi
