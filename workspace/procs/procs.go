package procs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

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
	// Wall, when it is not nil, puts the process behind a wall: it says how.
	Wall func(program string, args []string) (Behind, error)
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
	// Thread is called on the thread that it is forked from, which is thrown away
	// afterwards. nil: nothing is.
	Thread func() error
}

// Process is a program that runs, or has ended. Make it with Start.
type Process struct {
	o    Options
	p    *process.Process
	log  *log
	done chan struct{} // closed when the end is in the log
	exit Exit          // set before done is closed
	life context.Context
	end  context.CancelFunc // of the waits for readers

	mu       sync.Mutex
	reason   string   // why it is ended; guarded by mu
	lacks    string   // why output is missing; guarded by mu
	terminal *os.File // nil: none; guarded by mu
	input    *os.File // nil: none, or closed; guarded by mu
	writing  sync.Mutex
}

// Start starts a program. The error is a *StartError, or says that there is no program.
func Start(o Options) (*Process, error) {
	if len(o.Args) == 0 || o.Args[0] == "" {
		return nil, &StartError{"", errors.New("no program was named")}
	}
	for _, text := range slices.Concat(o.Args, o.Env) {
		if strings.ContainsRune(text, 0) {
			return nil, &StartError{o.Args[0], errors.New("an argument or a variable holds a NUL")}
		}
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	program, err := look(o)
	if err != nil {
		return nil, &StartError{o.Args[0], err}
	}
	p := &Process{o: o, log: newLog(o.Logs, o.Keep), done: make(chan struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	if err := p.start(program); err != nil {
		p.end()
		return nil, &StartError{o.Args[0], errors.Join(err, p.log.close())}
	}
	return p, nil
}

// look finds the program.
func look(o Options) (string, error) {
	name := o.Args[0]
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		return name, nil
	}
	for _, kv := range slices.Backward(o.Env) {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			at := filepath.Join(dir, name)
			if info, err := os.Stat(at); filepath.IsAbs(dir) && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
				return at, nil
			}
		}
		break
	}
	return "", fmt.Errorf("it is not on PATH: %w", os.ErrNotExist)
}

// start starts the process, and the goroutines that read its output.
func (p *Process) start(program string) error {
	args := p.o.Args[1:]
	po := process.Options{Env: p.o.Env, Dir: p.o.Dir, AddressSpace: p.o.Memory, MaxFiles: p.o.Files}
	if p.o.Wall != nil {
		b, err := p.o.Wall(program, args)
		if err != nil {
			return err
		}
		if b.Done != nil {
			defer b.Done()
		}
		program, args, po.Confine, po.ExtraFiles = b.Path, b.Args, b.Thread, b.Files
		po.Env = append(slices.Clip(po.Env), b.Env...)
	}
	po.Path, po.Args = program, args
	var theirs, ours []*os.File // the ends of pipes
	pipe := os.Pipe
	outs := map[EventKind]*os.File{}
	var err error
	switch {
	case p.o.Terminal != nil:
		var master, slave *os.File
		if master, slave, err = pty.Open(); err == nil {
			po.Terminal, p.terminal, p.input = slave, master, master
			theirs, ours = []*os.File{slave}, []*os.File{master}
			outs[EventTerminal] = master
			err = p.size(*p.o.Terminal)
		}
	default:
		var r, w *os.File
		if r, w, err = pipe(); err == nil {
			po.Output, outs[EventStdout], theirs, ours = w, r, append(theirs, w), append(ours, r)
			r, w, err = pipe()
		}
		if err == nil {
			po.Errors, outs[EventStderr], theirs, ours = w, r, append(theirs, w), append(ours, r)
		}
		if err == nil && p.o.Input {
			if r, w, err = pipe(); err == nil {
				po.Stdin, p.input, theirs, ours = r, w, append(theirs, r), append(ours, w)
			}
		}
	}
	if err == nil {
		p.p, err = process.Start(po)
	}
	for _, f := range theirs {
		_ = f.Close() // the process has its own
	}
	if err != nil {
		for _, f := range ours {
			_ = f.Close() // nothing was done with them
		}
		return err
	}
	var pumps sync.WaitGroup
	for kind, f := range outs {
		pumps.Go(func() { p.pump(kind, f) }) // ends with the output; wait joins it
	}
	go p.wait(&pumps, outs) // ends with the process, whose end is the caller's; done is its join
	return nil
}

// quiet is how long the output of a process that has ended is still waited for: what it
// has started elsewhere may hold the pipe open for ever.
const quiet = 500 * time.Millisecond

// pump reads one output.
func (p *Process) pump(kind EventKind, f *os.File) {
	buffer := make([]byte, 32<<10)
	for {
		select {
		case <-p.p.Done(): // a deadline that passed while a reader was slow does not count
			_ = f.SetReadDeadline(time.Now().Add(quiet)) // as in wait
		default:
		}
		n, err := f.Read(buffer)
		if n > 0 {
			if failed := p.log.add(p.life, kind, slices.Clone(buffer[:n])); failed != nil {
				if p.life.Err() != nil {
					return // it was closed
				}
				p.missing(failed) // the process must not wait for what will not be better
			}
		}
		if err != nil {
			return // its end, which a terminal tells as an error
		}
	}
}

// missing notes why output could not be kept.
func (p *Process) missing(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lacks == "" {
		p.lacks = err.Error()
	}
}

// wait waits for the end of the process and of its output.
func (p *Process) wait(pumps *sync.WaitGroup, outs map[EventKind]*os.File) {
	defer close(p.done)
	<-p.p.Done()
	for _, f := range outs {
		_ = f.SetReadDeadline(time.Now().Add(quiet)) // a terminal without deadlines ends with its processes
	}
	pumps.Wait()
	p.mu.Lock()
	reason, lacks, input, terminal := p.reason, p.lacks, p.input, p.terminal
	p.input, p.terminal = nil, nil
	p.mu.Unlock()
	if input != nil && input != terminal {
		_ = input.Close() // no one reads it
	}
	for _, f := range outs {
		_ = f.Close() // it was read
	}
	p.exit = exitOf(p.p.Err(), reason)
	p.exit.Incomplete = lacks
	_ = p.log.end(p.exit) // of a process that was closed no one asks
}

func exitOf(err error, reason string) Exit {
	exit, ok := errors.AsType[*process.ExitError](err)
	switch {
	case err == nil:
		return Exit{Reason: reason}
	case ok:
		return Exit{Code: exit.Code, Signal: exit.Name, Reason: reason}
	default:
		return Exit{Code: -1, Reason: err.Error()}
	}
}

// PID returns its process id.
func (p *Process) PID() int { return p.p.PID() }

// Terminal reports whether it has a terminal.
func (p *Process) Terminal() bool { return p.o.Terminal != nil }

// Done is closed when the process has ended, and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how it ended; false: it has not.
func (p *Process) Exit() (Exit, bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

// Wait waits for its end.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, nil
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// Read returns a reader of what comes after an event; 0: of all that is kept. The error
// is ErrAhead.
func (p *Process) Read(after uint64) (*Reader, error) { return p.log.reader(after) }

// Latest returns the number of its latest event, 0 for none: whoever reads after it gets
// what happens from now on.
func (p *Process) Latest() uint64 { return p.log.latest() }

// Stop ends the process and its group for a reason that its Exit then has: by SIGTERM,
// and after a grace by SIGKILL; 0: 2 s, negative: at once. It returns when it has
// ended, or says that it has not.
func (p *Process) Stop(ctx context.Context, reason string, grace time.Duration) error {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = reason
	}
	p.mu.Unlock()
	if err := p.p.Stop(ctx, process.StopOptions{Grace: grace}); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(4 * quiet): // a reader is slow: what it did not take is left out
		p.end()
		<-p.done
	}
	return nil
}

// Close removes what is kept of a process that has ended; it ends one that has not.
func (p *Process) Close() error {
	err := p.Stop(context.Background(), "it was closed", -1)
	p.end()
	return errors.Join(err, p.log.close())
}

var _ io.Closer = (*Process)(nil)
