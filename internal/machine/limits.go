package machine

// Limits is what a process of this user can get here. A zero is not known, or
// not limited.
type Limits struct {
	// OpenFiles is the hard limit of open files of one process: a program may raise
	// its own limit up to it.
	OpenFiles uint64
	// Processes is how many processes this user may have (ulimit -u), PIDs how
	// many there may be on the machine, or in the control group of this process,
	// whichever is less; PIDsUsed is how many there are.
	Processes, PIDs, PIDsUsed uint64
	// PIDsFrom names the file that says so.
	PIDsFrom string
	// Memory is what this process may use in all, in bytes, and Available what of
	// it is free now. MemoryFrom names the file that says so.
	Memory, Available uint64
	MemoryFrom        string
	// Temp is the room for temporary files in TempDir, in bytes.
	Temp    uint64
	TempDir string
}

// Loose is a file or a folder that others than its owner can read or change, or
// that is not ours at all.
type Loose struct {
	Path string
	// Why says what is wrong: "can be read by others (mode 0644)".
	Why string
}
