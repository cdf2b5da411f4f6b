package toolproc

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// failure is the exception that a program of Python failed with.
type failure struct{ kind, message string }

// Signs of tracebacks, and of what the runtime of C++ writes before it aborts.
const (
	tracebackHead = "Traceback (most recent call last):"
	badAlloc      = "terminate called after throwing an instance of 'std::bad_alloc'"
	noThread      = "can't start new thread"
)

// exceptionLine is the last line of a traceback: a type with the modules that it is
// in, and for most types a text.
var exceptionLine = regexp.MustCompile(`^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::\s*(.*))?$`)

// exceptionName is how types are called that a text names without a traceback.
var exceptionName = regexp.MustCompile(`(?:Error|Exception|Exit|Interrupt)$`)

// traced is the exception of the last traceback in a text. What stands inside of the
// message of an exception, and what the program printed besides, is none.
func traced(text string) (failure, bool) {
	var found failure
	var there, inside bool
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == tracebackHead:
			inside = true
		case !inside || line == "" || line[0] == ' ':
		default: // the first line without an indent ends it
			inside = false
			if m := exceptionLine.FindStringSubmatch(line); m != nil {
				found, there = failure{m[1], m[2]}, true
			}
		}
	}
	return found, there
}

// named is the exception that an answer names, as in "ValueError: no such city".
func named(detail string) (failure, bool) {
	line, _, _ := strings.Cut(detail, "\n")
	m := exceptionLine.FindStringSubmatch(strings.TrimSpace(line))
	if m == nil || !exceptionName.MatchString(m[1]) {
		return failure{}, false
	}
	return failure{m[1], m[2]}, true
}

// failedWith is the exception behind a failed run: the one that the tool names, and
// only if it names none the last one on its standard error, which may be another run's.
func failedWith(detail, stderr string) failure {
	if f, ok := named(detail); ok {
		return f
	}
	f, _ := traced(stderr)
	return f
}

// memory says that the exception is what an allocation fails with. Those of a graphics
// card have other names.
func (f failure) memory() bool {
	switch f.kind[strings.LastIndexByte(f.kind, '.')+1:] {
	case "MemoryError", "_ArrayMemoryError", "ArrowMemoryError":
		return true
	case "OSError":
		return strings.HasPrefix(f.message, "[Errno 12] ") // ENOMEM
	default:
		return false
	}
}

// thread says that the exception is what Python raises when the system gives it no
// thread. It does not say why.
func (f failure) thread() bool { return f.kind == "RuntimeError" && f.message == noThread }

// missing says that a package, or a part of one, is not there.
func (f failure) missing() bool { return f.kind == "ModuleNotFoundError" || f.kind == "ImportError" }

// unmapped says that there was no room for the code of a package.
func (f failure) unmapped() bool {
	return f.missing() && strings.Contains(f.message, "failed to map segment from shared object")
}

// endedForMemory says whether the end of the process is one for want of memory:
// it failed with that, or the system has ended it for that.
func (p *Process) endedForMemory(stderr string) bool {
	exit, ok := errors.AsType[*process.ExitError](p.proc.Err())
	if !ok {
		return false
	}
	switch syscall.Signal(exit.Signal) {
	case syscall.SIGKILL:
		return p.oom.raised()
	case syscall.SIGABRT:
		for line := range strings.Lines(stderr) {
			if strings.TrimSpace(line) == badAlloc {
				return true
			}
		}
		return false
	case 0:
		f, _ := traced(stderr)
		return f.memory()
	default:
		return false
	}
}

func (p *Process) memoryError(e *messages.ToolError) *messages.ToolError {
	e.Kind = messages.ToolErrorMemory
	switch {
	case p.o.Tool.MaxMemoryMB <= 0:
		e.Message = "the tool ran out of memory; it has no limit of its own, since max_memory_mb is 0"
		e.Hint = "view stderr; let the tool use less"
	default:
		e.Message = fmt.Sprintf("ResourceLimitExceeded: memory (max_memory_mb is %d)", p.o.Tool.MaxMemoryMB)
		e.Hint = "view stderr; let the tool use less, or raise max_memory_mb in its tool.json"
	}
	return e
}

// stackSize is what a thread of Linux takes of the address space when its program
// does not say otherwise.
const stackSize = 8 << 20

// threadError completes the error of a run for which the tool got no thread. Stacks
// count in the limit of the address space: where there is no room for one more, the
// limit is the reason.
func (p *Process) threadError(e *messages.ToolError) *messages.ToolError {
	const slack = 1 << 20 // what the library of C adds to a stack
	limit := p.o.memoryBytes()
	if peak := mostMapped(p.proc.PID()); limit == 0 || peak == 0 || peak+stackSize+slack < limit {
		e.Hint = "the system gave the tool no thread: let it use fewer at once"
		return e
	}
	e = p.memoryError(e)
	e.Hint = "the stacks of threads count in max_memory_mb: make them smaller with threading.stack_size, use fewer threads, or raise it in tool.json"
	return e
}
