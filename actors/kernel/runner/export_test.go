package runner

// KillWait is how long a session that has closed its descriptors has to end.
const KillWait = killWait

// InGroups has all sessions of a server get control groups under a folder, also
// without limits.
func (o ServerOptions) InGroups(base string) ServerOptions {
	o.groupBase = base
	return o
}

// HoldControl keeps requests from the session's side thread, as a long answer to a call
// of the host does, until the function returned is called.
func (i *Interpreter) HoldControl() func() {
	i.writing <- struct{}{}
	return func() { <-i.writing }
}
