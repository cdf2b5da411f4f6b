// Package toolproc is the process of one tool and the HTTP that it speaks:
// GET /healthz, GET /schema, POST /run, GET /stream, POST /cancel, on a port of
// the loopback interface that the tool gets with --port.
//
// # Guarantees
//
//   - [Start] returns a process that has answered /healthz with {"ok": true}, or
//     a [*StartError] with the end of what it wrote to standard error, and then
//     leaves nothing behind. The end of the process ends the wait at once.
//   - A port is given out once in the life of this process.
//   - The tool sees of the host's environment what toolspec.Environment lets
//     through, and never its own token in an argument.
//   - The last 64 KiB of standard error are kept, also after the end, and are
//     shown without the values of the tool's secrets.
//   - On Linux the process ends with the host, however that ends, and with the process
//     what it has started, also in sessions of their own: each tool has an owner
//     ([process.Owner]), which runs in the tool's interpreter. What is left when that is
//     killed too, package process says.
//   - On other systems the process and its group end with a host that ends in order,
//     on Windows the process alone. A host that is killed there leaves them.
//
// The methods of [Process] may be called from any goroutine.
//
// # The life of a process
//
//	Start ─▶ spawned ─/healthz─▶ healthy ─/schema─▶ up ─Stop─▶ TERM ─5 s─▶ KILL ─▶ ended
//	            │ it ended, 30 s                    │ it ended by itself
//	            └──────────▶ *StartError            └──────────▶ Done, Err
package toolproc
