package jupyter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/actors/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

// The names of the expressions that ride on the init code's reply: the reply
// is never rate limited nor dropped, as output can be.
const (
	pidExpression    = "pid"
	pythonExpression = "python"
)

var initExpressions = map[string]string{
	pidExpression:    `__import__("os").getpid()`,
	pythonExpression: `__import__("platform").python_version()`,
}

// initCode is what every new kernel runs first: it goes to the working
// directory, sets the environment, and makes the working directory importable.
// It leaves no name behind.
func initCode(cwd string, env map[string]string) string {
	var b strings.Builder
	b.WriteString("def __coppice_init(cwd, env):\n" +
		"    import os, sys\n" +
		"    if cwd:\n" +
		"        os.chdir(cwd)\n" +
		"        if cwd not in sys.path:\n" +
		"            sys.path.insert(0, cwd)\n" +
		"    os.environ.update(env)\n" + quietCode)
	fmt.Fprintf(&b, "try:\n    __coppice_init(%s, %s)\nfinally:\n    del __coppice_init\n", pyString(cwd), pyDict(env))
	return b.String()
}

// quietCode makes a semicolon at the end of a cell suppress its result, as it
// does in a notebook: IPython looks for it in its history, and the calls of a
// host are kept out of that.
const quietCode = `    try:
        from IPython import get_ipython
        shell = get_ipython()
        hook, cell = shell.displayhook, [""]
        ends = hook.semicolon_at_end_of_expression
        shell.events.register("pre_run_cell", lambda info: cell.__setitem__(0, info.raw_cell or ""))
        hook.quiet = lambda: ends(cell[0])
    except (ImportError, AttributeError):
        pass  # another kernel of Python, or an older IPython: the result is shown
`

// envCode sets environment variables.
func envCode(env map[string]string) string {
	return "__import__(\"os\").environ.update(" + pyDict(env) + ")\n"
}

func pyDict(m map[string]string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pyString(k))
		b.WriteString(": ")
		b.WriteString(pyString(m[k]))
	}
	b.WriteByte('}')
	return b.String()
}

// pyString returns s as a Python string literal. A JSON string is one, as long
// as it holds no surrogate pairs as escapes, which Python reads as two
// characters; encoding/json writes characters beyond ASCII as they are.
func pyString(s string) string {
	lit, err := json.Marshal(s)
	if err != nil {
		return `""` // json.Marshal of a string cannot fail
	}
	return string(lit)
}

func stringExpression(r jupyter.ExecuteReply, name string) (string, bool) {
	e, ok := r.UserExpressions[name]
	if !ok || e.Error != nil {
		return "", false
	}
	text, ok := e.Data.Text(messages.MIMEPlain)
	if !ok {
		return "", false
	}
	return strings.Trim(text, `'"`), true
}

func intExpression(r jupyter.ExecuteReply, name string) (int, bool) {
	text, ok := stringExpression(r, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
