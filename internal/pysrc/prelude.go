package pysrc

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coppice-run/coppice/internal/pylit"
)

// Helper describes one function of the prelude.
type Helper struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Docstring string `json:"docstring"`
	Category  string `json:"category"`
}

//go:embed prelude_docs.json
var preludeDocs []byte

// Helpers returns the functions that the prelude brings, by category and name, as
// an interpreter describes them: a test keeps the list true. The caller must not
// change it.
var Helpers = sync.OnceValues(func() ([]Helper, error) {
	var list []Helper
	if err := json.Unmarshal(preludeDocs, &list); err != nil {
		return nil, fmt.Errorf("read the list of helpers: %w", err)
	}
	return list, nil
})

// SessionPrelude is the code that brings the helpers into a session of package
// coppice_runner, which has loaded them already. mime is the type of their status
// events.
func SessionPrelude(mime string) string {
	return "__import__('coppice_prelude').install(globals(), display, " + pylit.String(mime) + ")\n"
}
