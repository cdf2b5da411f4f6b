package environment

import (
	"slices"

	"github.com/coppice-run/coppice/internal/pysrc"
)

// Helper describes a function that every session has: its name, its signature
// without types, what it does in a sentence or two, and its category.
type Helper = pysrc.Helper

// Helpers lists the functions that every session has, by category and name. The
// list is the caller's own.
func Helpers() []Helper {
	list, err := pysrc.Helpers()
	if err != nil {
		panic(err) // what is built in can be read: a test reads it
	}
	return slices.Clone(list)
}
