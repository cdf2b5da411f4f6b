// Package console is what all commands share, wherever they are: the standard
// streams, the signals, the exit codes, how a command is described, how it says that
// it waits, how it asks a person, and the host that it starts.
//
// # Guarantees
//
//   - Writing to a stream never fails ([Output]): a reader who left ends the command,
//     and a full disk is reported at the end.
//   - An error of a command is an [Exit], which has a code, or a [UsageError]; what a
//     command made by [Command.Make] returns besides becomes an Exit with [Raised].
//   - A [Host] ends with the command that started it, and in a hurry when the process
//     is to end; what did not end is reported on standard error.
//   - Goroutines end with [Progress.Done], [Stops.Close] and [Host.End]. One that reads a
//     line that is never typed is left to the end of the process.
//
// It imports no package of commands: those import it.
package console
