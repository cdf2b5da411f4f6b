// Package workspaceapi is the part of coppice serve that is about workspaces: how they
// are made, changed and ended, their files, and their processes. Sessions in a workspace
// are those of package httpapi, whose requests name one. Its client is that of package
// client.
//
//	GET    /api/workspaces?label=NAME=VALUE&owner=   those that have not ended
//	POST   /api/workspaces                           makes one
//	GET    /api/workspaces/{workspace}               one of them
//	PATCH  /api/workspaces/{workspace}               changes labels, lifetime, pin
//	DELETE /api/workspaces/{workspace}               ends it, with all that is in it
//
//	GET    /api/workspaces/{workspace}/files?path=   what a file holds, or ranges of it
//	PUT    /api/workspaces/{workspace}/files?path=   writes one, whole or not at all
//	POST   /api/workspaces/{workspace}/files?path=   writes those of a form below a folder
//	DELETE /api/workspaces/{workspace}/files?path=   removes what is there
//	GET    /api/workspaces/{workspace}/files/{list,stat}?path=
//	POST   /api/workspaces/{workspace}/files/{make,move}
//	GET    /api/workspaces/{workspace}/files/watch?path=   changes, as server-sent events
//
//	GET    /api/workspaces/{workspace}/processes
//	POST   /api/workspaces/{workspace}/processes     starts one
//	GET    /api/workspaces/{workspace}/processes/{process}[?wait=SECONDS]
//	DELETE /api/workspaces/{workspace}/processes/{process}
//	GET    /api/workspaces/{workspace}/processes/{process}/events   its output and its end
//	POST   /api/workspaces/{workspace}/processes/{process}/{input,close,signal,resize}
//
// # Guarantees
//
//   - What paths may lead to is package files' to say: nothing outside of the folder
//     of the workspace. A path is in the query or in a body, never in the path of the
//     address, so that nothing on the way takes it apart.
//   - The content of a file is never in memory as a whole, whichever way it goes. An upload
//     may take as long as it likes, as long as something comes each minute. One
//     that breaks leaves nothing.
//   - The events of a process are numbered from 1 without a gap: whoever names the last one
//     seen (Last-Event-ID, or ?after=) gets each later one once. A process waits for a
//     reader who is there; see package procs.
//   - The changes of a watch are numbered too, but not kept: whoever comes back is told
//     first that some may be lost.
//   - While the content of a file goes in or out, the workspace is in use.
//   - What a workspace's environment holds is never told.
//
// Its handlers run in the goroutines of the HTTP server; it has none of its own that
// outlive a request.
//
// The OpenAPI document of package httpapi describes these routes too, and its tests
// hold it true. The package authenticates no one: mount it behind httpserver.
package workspaceapi
