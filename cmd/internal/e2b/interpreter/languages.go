package interpreter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
)

// tongue is the language of a context, and the kernelspec of its kernels, "" for the one that
// sessions have that name none.
type tongue struct{ language, kernel string }

// otherNames are those that clients have for a language besides the one that kernelspecs have.
var otherNames = map[string]string{
	"python3": python, "py": python, "js": "javascript", "node": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash",
}

// languageError says that there is no kernel for a language.
type languageError struct {
	name string
	have []string
}

func (e *languageError) Error() string {
	return fmt.Sprintf("there is no context for %.40s here: the languages are %s; shell commands run with commands.run", e.name, strings.Join(e.have, ", "))
}

// speaks finds the kernel for the language that a client means, "" for Python. Only where
// another one is meant, the host is asked which kernelspecs it has: that may have to start
// the process that kernels come from. The error is a *languageError, or why they are not known.
func (i *Interpreter) speaks(ctx context.Context, name string) (tongue, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	if other, ok := otherNames[want]; ok {
		want = other
	}
	if want == "" || want == python {
		return tongue{language: python}, nil
	}
	specs, err := i.host.Kernelspecs(ctx)
	if err != nil {
		return tongue{}, err
	}
	means := func(s coppice.Kernelspec) bool { return strings.EqualFold(s.Language, want) }
	at := slices.IndexFunc(specs, means)
	if at < 0 { // kernels of bash and of Node.js are known by names that are not those of languages
		at = slices.IndexFunc(specs, func(s coppice.Kernelspec) bool { return strings.EqualFold(s.Name, want) })
	}
	if at >= 0 && strings.EqualFold(specs[at].Language, python) { // it was named by its kernelspec
		want = python
	}
	if at >= 0 {
		return tongue{want, specs[at].Name}, nil
	}
	e := &languageError{name: want}
	for _, s := range specs {
		e.have = append(e.have, strings.ToLower(s.Language))
	}
	slices.Sort(e.have)
	e.have = slices.Compact(e.have)
	return tongue{}, e
}

// refuseLanguage answers a request with the error of speaks.
func refuseLanguage(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if _, ok := errors.AsType[*languageError](err); ok {
		status = http.StatusNotFound
	}
	answer.Error(w, status, err.Error())
}

// speaking is the context of code that names a language and no context: the default one for
// Python, and one of its own for each other language, which is made with its first code. nil:
// there are too many contexts.
func (i *Interpreter) speaking(t tongue) *session {
	if t.language == python {
		return i.find("")
	}
	id := defaultID + "-" + t.language
	if c := i.find(id); c != nil {
		return c
	}
	if i.add(i.make(id, i.w.Folder(), t)) {
		return i.find(id)
	}
	return nil
}
