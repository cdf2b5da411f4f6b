// Package eventlog keeps the events of one execution for readers who come late,
// or again.
//
// # Guarantees
//
//   - Entries are numbered from 1 without a gap. A reader that asks for what
//     comes after n gets n+1, n+2, … each once, as they were appended, however
//     often it comes back.
//   - Of the entries only the newest are in memory, up to Options.Memory bytes;
//     the rest is in a file that only this user can read, and that [Log.Close]
//     removes.
//   - The log takes Options.Max bytes. Append refuses what is beyond with
//     [ErrFull]; a short entry that must be there (the end of an execution) is
//     taken by [Log.Finish] all the same.
//   - Readers do not hold the writer back.
//
// # Life
//
//	open ──Append──▶ open ──Finish──▶ ended ──Close──▶ closed
//	  └──────────────────Close──────────────────────────▲
//
// All methods may be called from any goroutine.
package eventlog
