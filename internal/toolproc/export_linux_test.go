package toolproc

// CountIn counts the ends for want of memory in a file of a control group; raised says
// whether there was one since.
func CountIn(file string) (raised func() bool) {
	n, _ := oomKills(file)
	return oomCount{file, n}.raised
}

// MostMapped is the most that a process has had of the address space.
var MostMapped = mostMapped
