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
