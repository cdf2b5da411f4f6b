package pyenv

import (
	"os"
	"path/filepath"
)

// ManagedDir returns the environment that Setup builds in a brand's home.
func ManagedDir(home string) string { return filepath.Join(home, "python-env") }

// VenvPython returns the interpreter of a virtual environment.
func VenvPython(venv string) string { return venvPython(venv) }

func venvPython(venv string) string { return filepath.Join(binDir(venv), "python"+exeSuffix) }

func binDir(venv string) string { return filepath.Join(venv, binName) }

// OwnPython returns the interpreter of the virtual environment of a directory: that
// in .venv, else that in venv; "" when neither holds a program of that name. It runs
// nothing.
func OwnPython(dir string) string {
	for _, s := range []Source{SourceDotVenv, SourceVenv} {
		if python := venvPython(filepath.Join(dir, string(s))); isProgram(python) {
			return python
		}
	}
	return ""
}

// venvOf returns the virtual environment that an interpreter lies in, or "".
func venvOf(python string) string {
	venv := filepath.Dir(filepath.Dir(python))
	if _, err := os.Stat(filepath.Join(venv, "pyvenv.cfg")); err != nil {
		return ""
	}
	return venv
}

// What Setup keeps beside and in an environment. The mark and the lock lie
// beside it, since the environment itself is removed while they hold.
func incompleteMark(dir string) string { return dir + ".incomplete" }
func lockFile(dir string) string       { return dir + ".lock" }
func scratchDir(dir string) string     { return dir + ".tmp" }
func stampFile(dir string) string      { return filepath.Join(dir, "coppice-setup.json") }
func requirementsIn(dir string) string { return filepath.Join(dir, "coppice-requirements.txt") }
