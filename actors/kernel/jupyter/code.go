package jupyter

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/pylit"
	"github.com/coppice-run/coppice/internal/pysrc"
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

// missing reports whether a kernel was not prepared by the script of our kernels.
func missing(r jupyter.ExecuteReply) bool {
	return r.Status == jupyter.ReplyError && r.Error != nil && r.Error.Name == pysrc.KernelMissing
}

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
		b.WriteString(pylit.String(k))
		b.WriteString(": ")
		b.WriteString(pylit.String(m[k]))
	}
	b.WriteByte('}')
	return b.String()
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
