package pysrc

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
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
	return "__import__('coppice_prelude').install(globals(), display, " + literal(mime) + ")\n"
}

// kernelPrelude loads the package from its sources into an IPython kernel, brings
// the helpers into the user's namespace, hidden from %who, and again after a
// %reset. It leaves no name of its own.
const kernelPrelude = `def __coppice_prelude(sources, mime):
    import sys
    if "coppice_prelude" not in sys.modules:
        spec = type(sys.__spec__)
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name in sources:
                    return spec(name, Finder, origin=sources[name][0], is_package="." not in name)
            @staticmethod
            def create_module(spec):
                return None
            @staticmethod
            def exec_module(module):
                path, text = sources[module.__name__]
                exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        sys.meta_path.insert(0, Finder)
        try:
            import coppice_prelude
        finally:
            sys.meta_path.remove(Finder)
    import coppice_prelude
    from IPython import get_ipython
    from IPython.display import display
    shell = get_ipython()
    helpers = coppice_prelude.install(shell.user_ns, display, mime)
    shell.user_ns_hidden.update(helpers)
    anew = shell.init_user_ns
    def init_user_ns():
        anew()
        shell.user_ns.update(helpers)
        shell.user_ns_hidden.update(helpers)
    shell.init_user_ns = init_user_ns
try:
    __coppice_prelude(%s, %s)
finally:
    del __coppice_prelude
`

// KernelPrelude is the code that brings the helpers into a kernel of IPython.
func KernelPrelude(mime string) (string, error) {
	all, err := modules()
	if err != nil {
		return "", err
	}
	sources := map[string][2]string{}
	for module, source := range all {
		if module == preludeName || strings.HasPrefix(module, preludeName+".") {
			sources[module] = source
		}
	}
	text, err := json.Marshal(sources)
	if err != nil {
		return "", fmt.Errorf("write the Python sources: %w", err)
	}
	return fmt.Sprintf(kernelPrelude, "__import__('json').loads("+literal(string(text))+")", literal(mime)), nil
}

// literal returns s as a Python string literal: a JSON string is one, since
// encoding/json writes no surrogate pairs.
func literal(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // json.Marshal of a string cannot fail
	}
	return string(b)
}
