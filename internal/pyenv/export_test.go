package pyenv

// FilterAs filters by the rule of Windows (fold) or of the others.
func FilterAs(env []string, fold bool) []string { return filter(env, fold) }

// Installing returns options that install something smaller.
func (o SetupOptions) Installing(text string) SetupOptions {
	o.requirements = text
	return o
}

// Requirements is the embedded file.
var Requirements = requirements
