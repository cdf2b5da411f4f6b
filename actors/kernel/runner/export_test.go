package runner

// InGroups has all sessions of a server get control groups under a folder, also
// without limits.
func (o ServerOptions) InGroups(base string) ServerOptions {
	o.groupBase = base
	return o
}
