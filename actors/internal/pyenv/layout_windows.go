package pyenv

const (
	exeSuffix = ".exe"
	binName   = "Scripts"
	homeVar   = "USERPROFILE"
)
