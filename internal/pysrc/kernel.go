package pysrc

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/coppice-run/coppice/internal/pylit"
)

//go:embed kernel_cell.py
var kernelCell string

// Names of the modules that KernelCode makes in a kernel.
const (
	hostCallsModule = "coppice_hostcalls"
	callEnvModule   = "coppice_callenv"
	kernelModule    = "coppice_cell"
)

// KernelCode returns the Python code that gives a Jupyter kernel what cells have in a
// session of the runner: tool, runtime, and an input() that times out. url and token
// are where and by what right session calls its host; without url, calls fail with an
// error that says so. The code leaves no name behind, and does nothing in a kernel
// without IPython.
func KernelCode(url, token, session string) (string, error) {
	calls, err := files.ReadFile(name + "/hostcalls.py")
	if err != nil {
		return "", fmt.Errorf("read an embedded Python file: %w", err)
	}
	env, err := files.ReadFile(name + "/callenv.py")
	if err != nil {
		return "", fmt.Errorf("read an embedded Python file: %w", err)
	}
	sources, err := json.Marshal([][2]string{{hostCallsModule, string(calls)}, {callEnvModule, string(env)}, {kernelModule, kernelCell}})
	if err != nil {
		return "", fmt.Errorf("write the Python sources: %w", err)
	}
	place, err := json.Marshal([]string{url, token, session})
	if err != nil {
		return "", fmt.Errorf("write the Python sources: %w", err)
	}
	return fmt.Sprintf(`def __coppice_start(sources, place):
    import json, sys, types
    for name, text in json.loads(sources):
        module = types.ModuleType(name)
        sys.modules[name] = module
        try:
            exec(compile(text, "<coppice>/" + name + ".py", "exec", dont_inherit=True), module.__dict__)
        except ImportError:
            del sys.modules[name]
            return
    try:
        module.cell = module.start(*json.loads(place))
    except (ImportError, AttributeError):
        pass  # another kernel of Python
try:
    __coppice_start(%s, %s)
finally:
    del __coppice_start
`, pylit.String(string(sources)), pylit.String(string(place))), nil
}

// ResetCode is the Python code that resets the names of such a kernel.
const ResetCode = `__import__("sys").modules["` + kernelModule + `"].cell.reset()`

// EnterEnvCode is the Python code that sets the variables of a call, a dictionary of
// Python, in such a kernel for its next cell. again says that another cell of the same call had them.
func EnterEnvCode(dict string, again bool) string {
	word := "False"
	if again {
		word = "True"
	}
	return `__import__("sys").modules["` + kernelModule + `"].cell.env.enter(` + dict + ", " + word + ")"
}

// LeaveEnvCode is the Python code that puts them back, if that has not happened.
const LeaveEnvCode = `__import__("sys").modules["` + kernelModule + `"].cell.env.leave()`

// IdleInput is what answers a question of such a kernel that waited for so many
// seconds in vain.
func IdleInput(seconds float64) string { return fmt.Sprintf("\x04coppice-idle:%g", seconds) }

// NoInput answers a question of such a kernel that has no answer: input() raises
// EOFError. reason says why; "": the input has come to its end.
func NoInput(reason string) string {
	const end = "\x04"
	if reason == "" {
		return end
	}
	return end + "coppice-none:" + reason
}
