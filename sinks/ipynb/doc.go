// Package ipynb records what a session executes in a notebook: each cell of each
// call becomes a code cell with its outputs, by the rules of Jupyter.
//
//	recorder, err := ipynb.Open(ipynb.Options{Path: "session.ipynb"})
//	host, err := coppice.Start(ctx, coppice.Options{Sinks: []sinks.Attachment{recorder.Attachment()}})
//
// # Guarantees
//
//   - Cells are appended to what is in the notebook; a missing one is made
//     (nbformat 4.5). They are numbered on from the last one there.
//   - The file is a valid notebook at any time: it is written after every cell
//     and replaced by a rename.
//   - A file that was changed by others in the meantime is not overwritten. What the
//     call that ran showed is then lost to the recording, and the next call appends
//     to the file as it is.
//   - A notebook that cannot be written, since its folder is not there, say, is refused
//     by Open.
//   - A later failure of the recording does not affect the session: the sink ends for
//     the call that ran. [Recorder.Err] says so, and the logger of the host.
//   - A cell leaves at most MaxOutput bytes, and a notebook grows to about
//     MaxBytes; then another one is begun beside it (session-2.ipynb). So the
//     memory of a recording is bounded.
//
// # One cell
//
//	pending ──running──▶ recording ──complete, error──▶ saved
//	                         │
//	                         └──flush, end of the call──▶ saved
//
// Any goroutine may use a [Recorder].
package ipynb
