// Package own gives out folders that belong to one process each, by names that come again, so
// that nobody finds in his what another one has left.
//
// # Guarantees
//
//   - A folder has one owner at a time, and none in whose name a process lives that has it: beside
//     it stands a mark, a file with a lock of the system (flock), which ends with its holder,
//     however that ends and in whatever pid namespace it was.
//   - What a process has left that was killed is removed by who takes the folder next, and by
//     [Clean], unless it is needed; then the next one gets another folder, the name of which is
//     the first one's with a number.
//   - A folder that was to be kept is found by the next one of its name. One of which nothing
//     says whose it is stays as it is, and only goes to who asks for one that is kept.
//   - A folder below which something is mounted is not removed.
//
// The life of a folder:
//
//	      Take           Release, and Clean of a dead one
//	none ──────▶ owned ──────────────────────────────────▶ none
//	               │  ▲
//	  Release, kept│  │Take
//	               ▼  │
//	               kept
//
// Any goroutine may call the functions. The package starts none.
package own
