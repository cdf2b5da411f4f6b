package external

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-run/coppice/test/testpython"
)

// toyKernel is a small language of its own: each line is printed, "boom" is an error, "wait"
// waits for an interrupt, and "count" counts the cells of this kernel.
const toyKernel = `
import time
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

class Toy(Kernel):
    implementation, implementation_version, banner = "toy", "1", "toy"
    language_info = {"name": "toy", "mimetype": "text/plain", "file_extension": ".toy", "version": "1"}
    cells = 0

    def say(self, text, name="stdout"):
        self.send_response(self.iopub_socket, "stream", {"name": name, "text": text + "\n"})

    def fail(self, name, value):
        content = {"ename": name, "evalue": value, "traceback": [name + ": " + value]}
        self.send_response(self.iopub_socket, "error", content)
        return {"status": "error", "execution_count": self.execution_count, **content}

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **more):
        self.cells += 1
        try:
            for line in code.splitlines():
                if line == "boom":
                    return self.fail("ToyError", "boom")
                if line == "wait":
                    time.sleep(100)
                elif line.startswith("print "):
                    for i in range(int(line[6:])):
                        self.say(str(i))
                        if i % 10 == 0:
                            time.sleep(0.002)
                else:
                    self.say(str(self.cells) if line == "count" else line)
        except KeyboardInterrupt:
            return self.fail("ToyInterrupt", "")
        return {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}

IPKernelApp.launch_instance(kernel_class=Toy)
`

// ToySpec is the kernel.json of a kernel whose language is toy.
func ToySpec(tb testing.TB) string {
	tb.Helper()
	spec, err := json.Marshal(map[string]any{
		"argv": []string{testpython.Path(tb), "-c", toyKernel, "-f", "{connection_file}"}, "display_name": "Toy", "language": "toy",
	})
	must(tb, err)
	return string(spec)
}

// WithToy is the environment of this process, in which Jupyter finds that kernel.
func WithToy(tb testing.TB) []string {
	tb.Helper()
	dir := tb.TempDir()
	spec := filepath.Join(dir, "jupyter", "kernels", "toy")
	must(tb, os.MkdirAll(spec, 0o700))
	must(tb, os.WriteFile(filepath.Join(spec, "kernel.json"), []byte(ToySpec(tb)), 0o600))
	return append(os.Environ(), "XDG_DATA_HOME="+dir)
}
