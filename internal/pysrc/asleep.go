package pysrc

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/coppice-run/coppice/internal/pylit"
)

//go:embed kernel_asleep.py
var kernelAsleep string

// asleepModule is the module of a kernel that writes and reads its memory.
const asleepModule = "coppice_asleep"

// surroundingsStub is what freeze needs of the runner's module of that name.
const surroundingsStub = `import os
def directory():
    try:
        return os.getcwd()
    except OSError:
        return ""
def patched(env, patch):
    return dict(env or {})
`

// AsleepCode returns the Python code that a Jupyter kernel writes its memory to a file with, and
// takes that of another one over with (FreezeCode, ThawCode). It leaves no name behind.
func AsleepCode() (string, error) {
	sources := [][2]string{{name + ".surroundings", surroundingsStub}}
	for _, module := range []string{"rebuild", "freeze"} {
		text, err := files.ReadFile(name + "/" + module + ".py")
		if err != nil {
			return "", fmt.Errorf("read an embedded Python file: %w", err)
		}
		sources = append(sources, [2]string{name + "." + module, string(text)})
	}
	data, err := json.Marshal(append(sources, [2]string{asleepModule, kernelAsleep}))
	if err != nil {
		return "", fmt.Errorf("write the Python sources: %w", err)
	}
	return fmt.Sprintf(`def __coppice_asleep(sources):
    import importlib.machinery, json, sys, types
    if %q in sys.modules:
        return
    package = sys.modules.get(%[2]q)
    if package is None:
        package = sys.modules[%[2]q] = types.ModuleType(%[2]q)
        package.__path__ = []
    for name, text in json.loads(sources):
        if name in sys.modules:
            continue
        module = types.ModuleType(name)
        module.__package__ = name.rpartition(".")[0]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin="<coppice>")
        exec(compile(text, "<coppice>/" + name + ".py", "exec", dont_inherit=True), module.__dict__)
        sys.modules[name] = module
        if module.__package__:
            setattr(package, name.rpartition(".")[2], module)
try:
    __coppice_asleep(%[3]s)
finally:
    del __coppice_asleep
`, asleepModule, name, pylit.String(string(data))), nil
}

// FreezeCode is the Python code that writes a kernel's memory to a file. names are left out.
func FreezeCode(path string, names []string, apart, whole bool) string {
	list := "["
	for _, n := range names {
		list += pylit.String(n) + ", "
	}
	return fmt.Sprintf(`__import__("sys").modules[%q].freeze(%s, %s], bool(%d), bool(%d))`, asleepModule, pylit.String(path), list, digit(apart), digit(whole))
}

// ThawCode is the Python code that has a kernel take over what a file holds, of which image says
// what that is.
func ThawCode(path, image string) string {
	return fmt.Sprintf(`__import__("sys").modules[%q].thaw(%s, %s)`, asleepModule, pylit.String(path), pylit.String(image))
}

// AsleepTold is the expression that has what FreezeCode and ThawCode have come to, as hexadecimal
// JSON: an object with image, thawed, unlike (why it is not for this kernel) or failed.
const AsleepTold = `__import__("sys").modules["` + asleepModule + `"].told`

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}
