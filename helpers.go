package coppice

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/python"
)

// Helper describes a function that every session has: its name, its signature
// without types, what it does in a sentence or two, and its category.
type Helper = python.Helper

// Helpers lists the functions that every session has, by category and name. It is
// empty with [Options.NoHelpers].
func (h *Host) Helpers() []Helper {
	if h.o.NoHelpers {
		return nil
	}
	list, err := python.Helpers()
	if err != nil {
		panic(err) // what is built in can be read: a test reads it
	}
	return append([]Helper(nil), list...)
}

// docsTime bounds the reading of modules for a description.
const docsTime = 10 * time.Second

// helperDocs is the part of a tool's description that lists the helpers of sessions
// in a working directory. Modules that cannot be read are left out of it: the
// sessions tell of them.
func (h *Host) helperDocs(cwd string) string {
	ctx, cancel := context.WithTimeout(context.Background(), docsTime)
	defer cancel()
	helpers, _, err := h.HelpersIn(ctx, cwd)
	if err != nil {
		h.o.Logger.Warn("the description of the tools leaves out modules", "err", err)
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
