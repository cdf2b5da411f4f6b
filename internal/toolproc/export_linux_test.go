package toolproc

// Keeper is the process that ends what tools have started, 0 without one, and how many
// tools it has been told of.
func Keeper() (pid, tools int) {
	theKeeper.mu.Lock()
	defer theKeeper.mu.Unlock()
	if theKeeper.proc != nil {
		pid = theKeeper.proc.PID()
	}
	return pid, len(theKeeper.told)
}

// CountIn counts the ends for want of memory in a file of a control group; raised says
// whether there was one since.
func CountIn(file string) (raised func() bool) {
	n, _ := oomKills(file)
	return oomCount{file, n}.raised
}

// MostMapped is the most that a process has had of the address space.
var MostMapped = mostMapped
