// Package store keeps what sessions had in memory while they have no interpreter: sealed
// records, found by a name.
//
// # Guarantees
//
//   - A record is there as a whole or not at all, whatever ends the program that writes
//     it: its parts are on the disk before the name is.
//   - What a record holds is a pickle, and a pickle is code. So each is sealed with a key
//     of the host (HMAC-SHA256), which binds what it holds, its name, its owners, and the
//     Python and machine that it is for; and nothing of it is handed out before all of it
//     was found to be as it was written. What is cut, changed in a single bit, of another
//     key, another owner or another Python is refused ([*RefusedError]) with its reason.
//   - A record is open once at a time, over all programs of the machine: who has it open
//     is the only one to restore it. It stays until it is deleted, also when whoever had
//     it open has failed.
//   - A buffer that several records hold is on the disk once. One that is there is read
//     before a record relies on it, and written again when it is not what it was.
//   - What a record replaced is never handed out for it: where a program was killed between
//     the two, the one that was written last counts, and is refused when it was damaged.
//   - Files are 0600 and folders 0700. They are not encrypted: whoever reads the user's
//     files reads what the user's sessions knew.
//
// A record that has expired is as one that was deleted, for who has not opened it before: one
// that is open is whole until it is closed, however long that takes. Where the quota is used up, no
// record is written and none is dropped for it.
//
// # Life of a record
//
//	none ──Put──▶ kept ──Get──▶ open ──Close──▶ kept
//	                │             └──Delete──▶ none
//	                └──Delete, expiry, another Put──▶ none
//
// The package starts no goroutine. Any goroutine may call a [Store]; calls of one folder
// wait for one another where they change it.
package store
