// Package run runs the cells of a notebook in a session and records in the notebook
// what they show. It knows no session: [Notebook] makes its calls through a function,
// which Session.RunNotebook of the root package hands in, or a program that has its
// Python elsewhere.
//
//	report, err := run.Notebook(ctx, file.Document, run.Options{Save: file.Save}, execute)
//
// # Guarantees
//
//   - Cells run in the order of the document, one at a time, each as a call of its
//     own. The first one that does not complete ends the run, unless its error was
//     expected: by [TagRaises], or by Options.AllowErrors.
//   - Outputs are recorded by the rules of [notebook.Recorder]; RUNNING.md compares
//     them with those of Jupyter's own tools. What an Output widget captures is the
//     widget's, and the state of widgets goes into the notebook's metadata. A cell that is not run, or whose call
//     reaches no kernel, is not touched.
//   - The document is saved before the first cell when parameters changed it, after
//     every cell, and while a cell shows something. A save of a large document takes
//     long, and at most one tenth of the time goes into saving: after a cell that ended
//     sooner, the save is put off until ten times the length of the last one has passed
//     since then, or 16 MiB of output wait, whichever comes first. So a program that is
//     killed loses at most what was shown in that time, and of a cell that is running
//     the last Options.SaveEvery; what a cell showed that ran for longer is never lost
//     once it has ended.
//   - A cell leaves at most Options.MaxOutput bytes. The end of the cell says, on
//     stderr, how much was left out, and that it took too long or lost its kernel.
//   - When [Notebook] returns, its last call has ended, the goroutine that read its
//     events too, and the document is saved.
//
// # One cell
//
//	        ┌─ not chosen, no code, tagged skip-execution ──▶ skipped
//	cell ───┤
//	        └▶ planned ──▶ called ──┬─ reaches no kernel ──▶ not started ──▶ the run ends
//	                                │
//	                                └▶ recording ──▶ saved or due ──┬─ ok, or an expected error ──▶ next cell
//	                                     │    ▲              └─ anything else ──▶ the run ends
//	                                     └────┘ saved now and then
//
// A document belongs to its run. Runs of different documents are independent of each
// other, and any goroutine may start one.
package run
