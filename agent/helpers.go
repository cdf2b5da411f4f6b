package agent

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// docsTime bounds the reading of modules for a description.
const docsTime = 10 * time.Second

// helperDocs is the part of a tool's description that lists the helpers of sessions
// in the working directory of the options. Modules that cannot be read are left out of it: the
// sessions tell of them.
func (k kit) helperDocs() string {
	ctx, cancel := context.WithTimeout(context.Background(), docsTime)
	defer cancel()
	helpers, _, err := k.host.HelpersIn(ctx, k.o.Cwd)
	if err != nil {
		k.host.Options().Logger.Warn("the description of the tools leaves out modules", "err", err)
	}
	var b strings.Builder
	category := ""
	for _, helper := range helpers {
		if category == "" {
			b.WriteString("\n\nThese functions are there from the start:\n")
		}
		if helper.Category != category {
			category = helper.Category
			fmt.Fprintf(&b, "\n%s\n", category)
		}
		fmt.Fprintf(&b, "- %s%s: %s\n", helper.Name, helper.Signature, helper.Docstring)
	}
	return strings.TrimRight(b.String(), "\n")
}
