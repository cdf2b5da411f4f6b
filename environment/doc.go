// Package environment finds Python on this machine, makes an environment for it where
// needed, and says what is wrong with it. It needs no host: a program may look at the
// environment before it starts one, and package coppice uses it for its hosts.
//
//   - Find it: [Find] and [Preflight] are how a host chooses its interpreter and
//     sees whether a Kernel Gateway can run in it; [Look] reports all of that.
//   - Make it: [Setup] builds the managed environment, [CheckSetup] looks at it.
//   - Fill it: [Helpers] are the functions that sessions have, [Modules] the user's
//     own files that sessions load.
//   - Check it: [Doctor] looks for what keeps sessions from working, [TryToEscape]
//     checks whether the isolation of a session holds.
//
// # Guarantees
//
//   - Nothing changes but by Setup, which writes the environment that it is asked
//     for, and by Doctor with Fix, which ends and removes what no program claims
//     and what is proved to be ours.
//   - Nothing of this package starts a host. Doctor and TryToEscape run code in
//     sessions only through what their caller hands them.
//   - An interpreter that is looked at runs for at most a minute, and sees of the
//     environment what a kernel sees: no secrets.
//   - Settings are read from the Env of the options, and from this process only where
//     Env is nil.
//   - No report, finding or error holds a token or the value of a variable.
//
// All functions may be called from any goroutine, and by several programs at the
// same time.
package environment
