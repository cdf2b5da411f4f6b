// Package bash is the kernel backend that runs shell commands: each cell is a
// script for bash, or for sh where there is no bash. It gives commands what
// cells of Python have, by the same code: a place in the tree, a queue, a
// deadline, an interrupt that ends, truncated output with the whole kept aside,
// and one truthful result.
//
// # Guarantees
//
//   - A script runs in a process group of its own, with the null device as its
//     input and an environment that went through the filter for kernels.
//   - Standard output and error come in the order in which they were written.
//   - The cell ends when the shell does. What it left in its process group is
//     killed then; a program that is to stay has to leave the group (setsid). It then
//     stays until the host ends.
//   - An interrupt asks the whole group to end (SIGTERM) and kills it a second
//     later, so that a cell never outlives its deadline by more than that.
//   - A host that is killed takes its commands with it, and all that they have started,
//     in whatever session (Linux; see [process.Owner], which needs an interpreter).
//   - The exit status is that of the shell; a signal counts as 128 and its
//     number.
//
// # One interpreter
//
//	Start ──▶ idle ──Execute──▶ a shell runs ──its end──▶ idle ──Close──▶ gone
//
// Nothing but the working directory is kept between two cells: `cd` and
// variables are gone with the shell that had them.
//
// Package coppice uses it with a kernel for each call. Any goroutine may call
// [New]; the methods of an interpreter follow [kernel.Interpreter].
package bash
