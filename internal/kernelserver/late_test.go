package kernelserver

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// What late.py puts off is not imported with Jupyter, and is there for whoever needs it,
// by any of its names.
func TestWhatIsPutOffIsThereWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	late, err := filepath.Abs("late.py")
	require.NoError(t, err)
	const load = `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("late", sys.argv[1])
late = importlib.util.module_from_spec(spec)
spec.loader.exec_module(late)
def imported(): return "rfc3987_syntax.syntax_helpers" in sys.modules
late.put_off()
`
	const formats = `
assert not imported(), "it was imported"
import jsonschema
known = jsonschema.Draft7Validator.FORMAT_CHECKER
assert known.conforms("http://example.org/☃", "iri") and not known.conforms("a b", "iri")
assert known.conforms("/☃", "iri-reference") and not known.conforms("a b", "iri-reference")
assert imported() and type(sys.modules["rfc3987_syntax"]) is not late.Late
late.put_off()
assert type(sys.modules["rfc3987_syntax"]) is not late.Late, "it is there already"
`
	for name, program := range map[string]string{
		"Kernel Gateway": load + "import kernel_gateway.gatewayapp" + formats,
		"Jupyter Server": load + "import jupyter_server.serverapp" + formats,
		"another name": load + `
from rfc3987_syntax import is_valid_syntax_iri, is_valid_syntax
assert is_valid_syntax_iri("http://example.org/☃") and not is_valid_syntax("iri", "a b")
`,
		"a part": load + `
import rfc3987_syntax.syntax_helpers as part
assert part.is_valid_syntax_port("80")
`,
		"a Python without it": `
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "rfc3987_syntax" else find(name)
` + load + `assert "rfc3987_syntax" not in sys.modules`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), testpython.Path(t), "-X", "utf8", "-c", program, late)
			cmd.Dir = t.TempDir() // where no file has the name of a package
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}
