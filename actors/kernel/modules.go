package kernel

import (
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// NoticeModule is the code of a notice: modules of the user were not loaded.
const NoticeModule = "module"

// ModulesFailed is the notice that tells which modules were not loaded, a line
// each; nil for none.
func ModulesFailed(lines string) *messages.Notice {
	if lines == "" {
		return nil
	}
	return &messages.Notice{Code: NoticeModule, Text: "modules were not loaded, the session works without them:\n" + lines}
}

// ModulesLeftOut is the notice that a session has no modules at all, since its
// start failed with them.
func ModulesLeftOut(err error) *messages.Notice {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return &messages.Notice{Code: NoticeModule, Text: "all modules were left out, since the session did not start with them: " + why}
}
