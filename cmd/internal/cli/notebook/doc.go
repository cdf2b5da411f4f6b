// Package notebook is the commands of coppice notebook, and coppice export: they show,
// edit, run, compare and write out .ipynb files.
//
// # Guarantees
//
//   - What a command does not mean to change stays byte for byte, and a file that
//     changed between reading and writing is not written over: see package notebook of
//     the module.
//   - A notebook or a cell that the command line names wrong is a wrong command line
//     (exit code 2); what is wrong with a notebook itself is 1. The code of run is that
//     of coppice run.
//   - A run is saved after each cell, so that one which is cut off loses nothing but
//     what the last moments showed; package notebook/run has the bound.
package notebook
