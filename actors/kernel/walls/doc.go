// Package walls makes of what a host asks for (kernel.Isolation) the rules that a backend
// puts around its sessions, and around the programs of a workspace: which backend that is
// makes no difference to what is behind them.
//
// # Guarantees
//
//   - A rung that was named and is not available is an error, never a lower rung.
//   - What is confined gets a folder for temporary files (TMPDIR) from the rung landlock on:
//     the system's own is closed to it. [Folders] has it, and removes it.
//   - Where sessions have users of their own, all programs of a workspace have one of their own,
//     in the group of the sessions', and none of the rights with which it was made theirs.
//
// Package sandbox has the rungs, and does what the rules say.
package walls
