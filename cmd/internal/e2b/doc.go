// Package e2b serves workspaces as E2B's sandboxes: to its SDKs, unchanged, for JavaScript
// and Python. A workspace is a sandbox, and a session of one a context of the code interpreter.
//
//	/v2/sandboxes, /sandboxes/...      make, list, end, and give sandboxes time   (this package)
//	/files, /health, filesystem.*, process.*   the inside of a sandbox            (package envd)
//	/execute, /contexts                the code interpreter                       (package interpreter)
//	/snapshots                         what was kept of sandboxes                 (package shelf)
//
// All of them stand below one address, [Base]: the header E2b-Sandbox-Id says which sandbox
// is asked. Clients make signed addresses of files without any base, so that /files is
// served at the root too.
//
// # Guarantees
//
//   - But for [API.Debug], nothing is answered without the server's token, as X-API-Key, or,
//     for the inside of a sandbox, without what opens that sandbox and nothing else: its
//     access token, its traffic token, or an address of a file that was signed with the first
//     and has not expired.
//   - Every workspace of the host is a sandbox, whoever made it. What is made here has an
//     end: its timeout.
//   - What a request asks for and this server cannot do is refused, with E2B's form of an
//     error, and not left out.
//   - A request that is made twice with one Idempotency-Key makes one sandbox.
//   - After [API.Close] nothing of this package runs.
//
// # What a sandbox goes through
//
//	POST /v2/sandboxes ──▶ running ──DELETE, its timeout, the end of the server──▶ not found
//	                       │ ▲ │ ▲                                                     ▲
//	                       │ │ └─┘ connect and timeout give it another end             │
//	                 pause ▼ │ connect, or a request if it wants that                  │
//	                       paused ─────────DELETE, the end of the server───────────────┘
//
//	running ──snapshot──▶ kept on the shelf ──POST /v2/sandboxes with its ID──▶ another one, running
//
// Paused, its sessions are on disk and no time runs. A pause is refused when anything of the
// sandbox would be lost, unless its memory was not to be kept. So is a snapshot, always: it
// has the folder of the sandbox and what its sessions had, and the sandbox goes on. A fork is a
// snapshot that is no one's, and sandboxes that are made of it.
//
// The methods may be called from any goroutine.
package e2b
