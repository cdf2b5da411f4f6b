// Package tool is the commands of coppice tool: they make, check, run and look after
// tools, in a folder or at the server that keeps those of the folder warm.
//
// # Guarantees
//
//   - Every command works without a server. A coppice serve that runs for the same
//     folder is asked in place of a launcher, unless --no-server says otherwise.
//   - A launcher that a command starts has ended when the command has.
//   - The exit code of run and stream tells how the run ended, as that of coppice run
//     does; a tool that is not there is a wrong command line (2).
package tool
