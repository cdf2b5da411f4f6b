// Package artifact keeps the full output of calls in files, so that a reader
// who was shown a part can come back for the rest.
//
// # Guarantees
//
//   - An artifact is a file <n>.<tool>.log, mode 0600, in a directory of mode
//     0700. n counts from 0, goes on after what is there, and is never given
//     twice while the store lives. Numbers may be missing.
//   - Nothing is created before the first artifact is: neither file nor
//     directory.
//   - A file holds what was written to it, byte for byte, up to the cap; where
//     the cap cut it, its last line says so.
//   - A [Store] may be used by any number of goroutines, and its directory by
//     any number of processes that name the same tool, at once.
//
// # Names
//
// artifact://N names an artifact in text that a model reads. [Store.Resolve],
// [Store.Open], [Store.ReadLines], [Store.ReadBytes] and [Store.Search] take that form. Their errors are meant to
// be read by the model too, so they say what is available instead.
//
// # Retention
//
// [Store.Sweep] removes what is too old, and then the oldest ones until the
// rest fits. The newest artifact stays, and so does one that is still written;
// so no number is given again.
package artifact
