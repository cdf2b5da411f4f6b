package procs

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coppice-run/coppice/internal/process"
)

// What an operation on a process may fail with; ask with errors.Is.
var (
	// ErrAhead: a reader asks for what comes after an event that is not there.
	ErrAhead = errors.New("the process has no such event yet")
	// ErrNoInput: the process was started without input, or its input was closed.
	ErrNoInput = errors.New("the process takes no input")
	// ErrNoTerminal: the process has no terminal.
	ErrNoTerminal = errors.New("the process has no terminal")
	// ErrOver: the process has ended.
	ErrOver = errors.New("the process has ended")
	// ErrSignal: there is no signal of that name here.
	ErrSignal = errors.New("there is no such signal")
)

// StartError says why a program could not be started.
type StartError struct {
	// Program is what was asked for.
	Program string
	Err     error
}

// Error names the program.
func (e *StartError) Error() string { return fmt.Sprintf("start %.200q: %v", e.Program, e.Err) }

// Unwrap returns why.
func (e *StartError) Unwrap() error { return e.Err }

// Size is that of a terminal, in characters.
type Size struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// DefaultKeep is how many bytes of output are kept of a process.
const DefaultKeep = 64 << 20

// Options say what to start. The zero value of each field but Args is its default.
type Options struct {
	// Args are the program and its arguments. The program is a path, relative to Dir,
	// or, without a slash, looked up in the PATH of Env, of which relative entries do not
	// count. Required.
	Args []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, absolute. Required.
	Dir string
	// Input gives the process a pipe to read, for [Process.Write]. A terminal has one in any case. false: its
	// input is empty.
	Input bool
	// Terminal gives the process a terminal of this size; 0 of either: 80 by 24. nil: its output goes to pipes. Not on Windows.
	Terminal *Size
	// Keep is how many bytes of events are kept for readers who come later, at least 256
	// KiB. 0: 64 MiB.
	Keep int64
	// Logs is the folder for the file of events. "": that of the system for temporary files.
	Logs string
	// Memory limits the memory that the process, and each one that it starts, may map,
	// in bytes, and Files how many files each may have open; only Linux has either. 0: no limit.
	Memory uint64
	Files  uint64
	// FileSize bounds how long a file each may make, in bytes, on Linux. 0: no limit.
	FileSize uint64
	// Output is how many bytes the process may print: it is ended then, and what it has
	// printed besides is left out. 0: no limit.
	Output int64
	// Groups are the open folders of the control groups that it begins in, see
	// [process.Options.Groups], which the caller closes. nil: the host's.
	Groups []*os.File
	// Killed, when it is not nil, is asked for the reason when the process was killed, and by no
	// one here: with its number, before anyone learns of its end. "": there is none.
	Killed func(pid int) string
	// Owner, when it is not nil, owns the process and all that it starts, see [process.Owner],
	// Mark is what they are known by, and Part their part of that.
	Owner *process.Owner
	Mark  process.Mark
	Part  process.Part
	// Wall, when it is not nil, puts the process behind a wall: it says how.
	Wall func(Program) (Behind, error)
}

// Program is one that is to be put behind a wall.
type Program struct {
	// Path is the program, absolute, Dir its working directory, and Env its environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Terminal says that its stdin is a terminal.
	Terminal bool
	// Memory, Files and FileSize are its limits, as in [Options]. 0: there is none.
	Memory, Files, FileSize uint64
}

// Behind is how to start a program behind a wall.
type Behind struct {
	// Path and Args are what to start in its place.
	Path string
	Args []string
	// Files become its descriptors from 3 on. Done is called when it has been started, or
	// will not be; nil: nothing is.
	Files []*os.File
	Done  func()
	// Env is set for it.
	Env []string
	// Sealed says that the program has its environment and its limits behind the wall: what is
	// started in its place gets Env alone, and no limits.
	Sealed bool
	// Signal sends a signal to the program and all that it has started, where one to what was
	// started in its place does not reach it. nil: it does.
	Signal func(ctx context.Context, number int) error
	// Over is called when it has ended. nil: nothing is.
	Over func()
	// Thread is called on the thread that it is forked from, which is thrown away
	// afterwards. nil: nothing is.
	Thread func() error
	// Name says what Thread does: processes of one owner behind the same wall share what
	// owns them. "": each has its own.
	Name string
	// User is whom the program runs as; nil: as the host does. Becomes: what is started in its place
	// does so as the host, and has the program become the user.
	User    *process.User
	Becomes bool
}
