// Package home knows where Coppice keeps what belongs to a user, and how settings
// are read from a list of environment variables. It is the only place that looks
// for the home directory.
//
// # Guarantees
//
//   - It reads and changes nothing but the names of folders: nothing is made.
//   - The environment is what the caller passes, never that of this process, but
//     where the caller passes nil.
//   - Every function may be called from any goroutine.
package home
