package python

import "github.com/coppice-run/coppice/internal/pysrc"

// Helper describes one function that every session has.
type Helper = pysrc.Helper

// Helpers returns the functions that every session has, by category and name.
func Helpers() ([]Helper, error) { return pysrc.Helpers() }

// SessionPrelude is the code that brings the helpers into a session of the runner
// backend; mime is the type of their status events.
func SessionPrelude(mime string) string { return pysrc.SessionPrelude(mime) }

// ModulesCode is the code that loads modules into a session that has the prelude,
// "" for no module.
func ModulesCode(modules []Module) (string, error) {
	sources := make([]pysrc.Source, len(modules))
	for i, m := range modules {
		sources[i] = pysrc.Source{Path: m.Path, Text: m.Text, Problem: m.Problem}
	}
	return pysrc.ModulesCode(sources)
}
