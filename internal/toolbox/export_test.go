package toolbox

// The names of the files that tests lay a hand on.
const (
	LockFile = lockFile
	PinFile  = pinFile
)
