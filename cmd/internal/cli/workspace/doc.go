// Package workspace has the commands below coppice workspace. All of them ask the coppice
// serve that runs; what the package shares with other commands is in package console.
//
// exec passes standard input on and writes what the process prints, and its exit code is
// that of the process. With a terminal, the terminal of the command becomes that of the
// process: keys, Ctrl-C too, and changes of its size are passed on.
//
//	exec: starting ──▶ running ──its end──▶ exit with its code
//	                     │  interrupt: SIGINT to the process
//	                     └─ second interrupt, SIGTERM, SIGHUP: the process is ended
package workspace
