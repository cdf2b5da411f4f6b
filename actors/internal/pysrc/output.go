package pysrc

import (
	_ "embed"
	"encoding/json"
)

//go:embed kernel_output.py
var kernelOutput string

// OutputCode is the Python code after which an ipykernel numbers what its cells
// send and repeats it on request, as jupyter.Kernel.EnableReplay wants it. It
// leaves no name behind, and does nothing in another kernel of Python.
func OutputCode() string {
	lit, err := json.Marshal(kernelOutput)
	if err != nil {
		return "" // a string always has a form
	}
	return `def __coppice_output(source):
    import sys, types
    module = types.ModuleType("coppice_output")
    try:
        exec(compile(source, "<coppice>/output.py", "exec", dont_inherit=True), module.__dict__)
        module.output = module.start_here()
    except Exception:
        return  # another kernel of Python, or another ipykernel: what is lost is told then
    sys.modules["coppice_output"] = module
try:
    __coppice_output(` + string(lit) + `)
finally:
    del __coppice_output
`
}
