package pysrc

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/pylit"
)

// Source is one module of the user's: its text, or why it cannot be read.
type Source struct {
	Path, Text, Problem string
}

// moduleTime bounds the loading of all modules of a session together; each has a tenth of
// it at least.
const moduleTime = 10 * time.Second

// ModulesCode is the code that loads modules into a session that has the prelude;
// it follows the prelude. [ModulesTold] reports what was not loaded. "" for no
// module.
func ModulesCode(modules []Source) (string, error) {
	if len(modules) == 0 {
		return "", nil
	}
	list := make([][3]string, len(modules))
	for i, m := range modules {
		list[i] = [3]string{m.Path, m.Text, m.Problem}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("write the sources of modules: %w", err)
	}
	return fmt.Sprintf("__import__('coppice_prelude').modules.load(globals(), __import__('json').loads(%s), %g)\n", pylit.String(string(text)), moduleTime.Seconds()), nil
}

// ModulesTold is a Python expression: why modules were not loaded, a line each.
const ModulesTold = `__import__("sys").modules["coppice_prelude"].modules.told()`
