package workspace

// ByLooks has limits kept to without control groups.
func (o SetOptions) ByLooks() SetOptions {
	o.looks = true
	return o
}
