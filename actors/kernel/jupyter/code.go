package jupyter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/actors/internal/jupyter"
	"github.com/coppice-run/coppice/actors/internal/pysrc"
	"github.com/coppice-run/coppice/messages"
)

// The names of the expressions that ride on the init code's reply: the reply
// is never rate limited nor dropped, as output can be.
const (
	pidExpression     = "pid"
	pythonExpression  = "python"
	cwdExpression     = "cwd"
	replayExpression  = "replay"
	modulesExpression = "modules"
)

var initExpressions = map[string]string{
	pidExpression:    `__import__("os").getpid()`,
	pythonExpression: `__import__("platform").python_version()`,
	cwdExpression:    `__import__("os").getcwd()`,
	replayExpression: `"coppice_repeat_request" in __import__("IPython").get_ipython().kernel.control_handlers`,
	// Before the prelude has run it fails, which is no answer.
	modulesExpression: pysrc.ModulesTold + `.encode("utf-8", "replace").hex()`,
}

// initCode is what every new kernel runs first: it goes to the working
// directory, sets the environment, makes the working directory importable, and
// prepares for connections that break. It leaves no name behind. With remote, a
// working directory that does not exist is no error: the kernel may run on
// another machine.
func initCode(cwd string, env map[string]string, remote bool) string {
	var b strings.Builder
	b.WriteString("def __coppice_init(cwd, env, source):\n" +
		"    import os, sys\n" +
		"    if cwd" + map[bool]string{true: " and os.path.isdir(cwd)"}[remote] + ":\n" +
		"        os.chdir(cwd)\n" +
		"        if cwd not in sys.path:\n" +
		"            sys.path.insert(0, cwd)\n" +
		"    os.environ.update(env)\n" + quietCode + placeCode)
	fmt.Fprintf(&b, "try:\n    __coppice_init(%s, %s, %s)\nfinally:\n    del __coppice_init\n", pyString(cwd), pyDict(env), pyString(pysrc.Locate()))
	b.WriteString(pysrc.OutputCode())
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

// placeCode makes the kernel add to its error messages where in the cells an
// exception came from. The module that finds out is compiled when it is first
// needed. It must never keep an error from being told.
const placeCode = `    try:
        shell = get_ipython()
        session, show, compiler = shell.displayhook.session, shell._showtraceback, shell.compile
        texts, places, ran = {}, {}, [0, ""]
        def remember(info):
            raw = info.raw_cell or ""
            ran[0] += 1
            ran[1] = compiler.get_code_name(raw, raw, ran[0])
            texts[ran[1]] = ("<cell %d>" % ran[0], raw)
            while len(texts) > 2000:
                del texts[next(iter(texts))]
        def place(error):
            if not places:
                found = {}  # an interrupt may come half-way
                exec(compile(source, "<coppice>/locate.py", "exec", 0, True), found)
                places.update(found)
            cells = places["Cells"](texts.get)
            error = places["plainer"](error, cells, ran[1])
            found = places["locate"](error, cells, ran[1])
            found = {k: v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for k, v in found.items()}
            return found, cells.message(error)
        def tell(kind, error, lines):
            try:
                found, message = place(error)
            except Exception:
                return show(kind, error, lines)
            send = session.send
            def add(stream, msg, content=None, *args, **more):
                if msg == "error" and isinstance(content, dict):
                    content["coppice_place"] = found
                return send(stream, msg, content, *args, **more)
            session.send = add
            try:
                return show(kind, message, lines)  # only its text is looked at
            finally:
                session.send = send
        def group(error, depth=0):
            if error is None or depth > 20:
                return False
            return hasattr(error, "exceptions") and hasattr(error, "derive") or group(error.__cause__, depth + 1) or group(error.__context__, depth + 1)
        traces = shell.showtraceback
        def trace(exc_tuple=None, *args, **more):
            # IPython prints an exception group to stderr and tells of no error.
            error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
            if not group(error):
                return traces(exc_tuple, *args, **more)
            import traceback
            told = traceback.TracebackException.from_exception(error)
            while told.stack and told.stack[0].filename not in texts:
                del told.stack[0]
            tell(type(error), error, "".join(told.format()).splitlines())
        shell.events.register("pre_run_cell", remember)
        shell._showtraceback, shell.showtraceback = tell, trace
    except (NameError, AttributeError):
        pass  # as above
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
