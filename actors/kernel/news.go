package kernel

import "github.com/coppice-run/coppice/messages"

// News is how an interpreter began, which the first result of a call tells.
type News struct {
	// Restored is what it was restored with; nil: it began with nothing, for Reason.
	Restored *messages.Restored
	Reason   string
}
