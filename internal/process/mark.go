package process

// Mark is what a process and everything that it starts are known by, whatever they do
// to their groups, sessions, parents and environment. On Linux it is the number of file
// locks that they may hold (RLIMIT_LOCKS), which the system no longer heeds: a limit is
// inherited by all children and by the programs that they execute, and can be read of any process. It
// is no wall: code may lower its own, and is then found only among the descendants of
// what is known. 0 is none.
type Mark uint64

// Part is which part of what has a mark a process belongs to. It is inherited as the mark
// is, and is no wall either: it is the lower of the two limits of which the mark is the
// higher, and code may set its own. 0 is none.
type Part uint64

// Belonging is a mark, and a part of what has it.
type Belonging struct {
	Mark Mark
	Part Part
}
