package process

// Member is a process as [Tally] sees it.
type Member struct {
	Identity
	// Parent is its parent's number.
	Parent int
	// Memory is what it has in memory in bytes, without files that it has mapped, and -1 where
	// that cannot be read. What it shares with a process that has forked it counts for both; see [Proportional].
	Memory int64
	// Part is its part of what has the mark, 0 for none.
	Part Part
}
