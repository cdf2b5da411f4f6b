package pyenv

import "os"

// Known is an interpreter that was found, for as long as its file stays the same:
// the same inode, size and time of its last change. Whoever has used an interpreter
// need not look for it again, which may fail for reasons of the moment. The zero
// value knows none. It is a value; a variable of it is not guarded.
type Known struct {
	rt   Runtime
	file os.FileInfo // nil: it could not be looked at
}

// Know takes note of an interpreter that [Resolve] has found. It reads the state of
// its file now: call it before the interpreter is used.
func Know(rt Runtime) Known {
	file, err := os.Stat(rt.Path)
	if err != nil {
		return Known{}
	}
	return Known{rt: rt, file: file}
}

// Recall returns the interpreter, and false when none is known or when its file has
// changed or is gone. It runs nothing.
func (k Known) Recall() (Runtime, bool) {
	if k.file == nil {
		return Runtime{}, false
	}
	now, err := os.Stat(k.rt.Path)
	if err != nil || !os.SameFile(k.file, now) || k.file.Size() != now.Size() || !k.file.ModTime().Equal(now.ModTime()) {
		return Runtime{}, false
	}
	return k.rt, true
}
