package runner

// KillWait is how long a session that has closed its descriptors has to end.
const KillWait = killWait

// InGroups has all sessions of a server get control groups under a folder, also
// without limits.
func (o ServerOptions) InGroups(base string) ServerOptions {
	o.groupBase = base
	return o
}
