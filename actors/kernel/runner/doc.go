// Package runner is the runner backend: sessions in milliseconds that need
// nothing but a Python interpreter.
//
// # Guarantees
//
//   - [Backend.Start] returns a session whose working directory, environment and
//     import path are set and whose prelude has run. When it fails, no process is
//     left.
//   - [Interpreter.Execute] hands every output to emit in the order in which it
//     was written, also what was written past Python to the descriptors 1 and 2,
//     and reads nothing while emit blocks: the session then waits in its write,
//     so that the host's memory stays bounded.
//   - What code prints between cells is kept, up to 64 KiB, and handed out at
//     the beginning of the next cell.
//   - A session that ends says why: exit code or signal.
//   - [Interpreter.Close] returns nil only when the process is gone.
//   - [Interpreter.Copy] copies a live session with all that it has in memory, or
//     says why that is not safe and changes nothing. Copies wait by name until
//     they are taken by Start or dropped, and end with [Server.Run].
//   - With ServerOptions.Keep a session outlives its host, from when [Backend.Start] has
//     returned it until it is closed: [Server] of the next host goes on with it, and with
//     the cell that runs. Each output of that is handed to emit there or here,
//     and to the record of the call before (package estate), so that nothing of it
//     is missing or twice.
//   - Sessions outlive their fork server; [Server.Run] then starts another one
//     for those to come. On the rung gvisor they share its sandbox and end with it; they
//     cannot be copied there, and what one has of the memory is not known.
//
// The mechanisms are in internal/forkserver (processes),
// internal/ndjson (frames) and internal/pysrc (the Python side);
// this package puts them behind the interface of package kernel.
//
// # exit()
//
// SystemExit, whoever raises it (exit, quit, sys.exit), ends the cell as an error
// and not the session: its variables stay. os._exit ends the process, and the
// cell is lost.
//
// # Goroutines
//
// A session has one goroutine, which reads its control descriptor from Start to
// its end; Close adds one that ends with the process. Execute reads frames in
// its caller's goroutine.
package runner
