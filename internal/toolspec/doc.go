// Package toolspec is the description of a tool: the file tool.json, what it
// may say, and what follows from it. It starts no process and uses no network.
//
// # Guarantees
//
//   - [Parse] refuses what is not in the format, with the path of every problem
//     ("inputs[2].max: expected a number, found a string"): a key that is not
//     known is a problem at every level.
//   - A [Tool] that Parse returned has all defaults filled in.
//   - [Discover] lists every tool folder, the broken ones with their error. A
//     folder of tools that does not exist is empty.
//   - [Environment] passes on no variable of the host that is not on its list, and
//     does not let a tool's own file redefine the reserved names.
//
// All functions may be called from any goroutine. A Tool is a value that does
// not change once it was parsed.
package toolspec
