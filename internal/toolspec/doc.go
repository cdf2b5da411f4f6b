// Package toolspec is the description of a tool: the file tool.json, what it
// may say, and what follows from it. It starts nothing and speaks to nobody.
//
// # Guarantees
//
//   - [Parse] refuses what is not in the format, with the path of every problem
//     ("inputs[2].max: expected a number, found a string"): a key that is not
//     known is a problem at every level.
//   - A [Tool] that Parse returned has all defaults filled in.
//   - [Discover] lists every tool folder, the broken ones with their error. A
//     folder of tools that is not there is empty.
//   - [Environment] never lets a variable of the host through that is not on
//     its list, nor a tool's own file redefine the names that are reserved.
//
// All functions may be called from any goroutine. A Tool is a value that nobody
// changes once it was parsed.
package toolspec
