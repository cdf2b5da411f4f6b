package jupyterapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice"
)

// specModel is a kernelspec for clients. They want an argv, and none of them runs it.
func specModel(s coppice.Kernelspec) map[string]any {
	return map[string]any{
		"name": s.Name, "resources": map[string]any{},
		"spec": map[string]any{
			"argv": []string{}, "env": map[string]any{}, "display_name": s.DisplayName, "language": s.Language,
			"interrupt_mode": "message", "metadata": map[string]any{"debugger": false, "backend": s.Backend},
		},
	}
}

// specError says that there is no kernelspec of a name.
type specError struct {
	name string
	have []string
}

func (e *specError) Error() string { return fmt.Sprintf("no such kernel: %.80s", e.name) }

// python is the language that more is known of than how to run its code.
const python = "python"

// speaksPython reports whether the language of a kernel is Python: code of the API itself is, and
// no other kernel is given it.
func speaksPython(s coppice.Kernelspec) bool { return strings.EqualFold(s.Language, python) }

// languageInfo is what clients are told of a language besides its name and version.
var languageInfo = []struct{ name, mimetype, extension string }{
	{"bash", "text/x-sh", ".sh"},
	{"javascript", "text/javascript", ".js"},
	{"julia", "application/julia", ".jl"},
	{"r", "text/x-r-source", ".r"},
	{"ruby", "application/x-ruby", ".rb"},
	{"typescript", "text/typescript", ".ts"},
}

// infoOf describes a language other than Python.
func infoOf(language string) map[string]any {
	info := map[string]any{"name": language, "version": "", "mimetype": "text/plain", "file_extension": ".txt"}
	name := strings.ToLower(language)
	if at := slices.IndexFunc(languageInfo, func(l struct{ name, mimetype, extension string }) bool { return l.name == name }); at >= 0 {
		info["mimetype"], info["file_extension"] = languageInfo[at].mimetype, languageInfo[at].extension
	}
	return info
}
