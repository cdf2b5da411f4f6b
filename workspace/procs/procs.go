package procs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/coppice-run/coppice/internal/process"
)

// Process is a program that runs, or has ended. Make it with Start.
type Process struct {
	o   Options
	p   *process.Process
	log *log
	// signal sends a signal to a program that hears none of its group's; nil: it hears them.
	signal func(ctx context.Context, number int) error
	over   func()        // called when it has ended; nil: nothing is
	done   chan struct{} // closed when the end is in the log
	exit   Exit          // set before done is closed
	life   context.Context
	end    context.CancelFunc // of the waits for readers

	mu       sync.Mutex
	reason   string   // why it is ended; guarded by mu
	printed  int64    // in bytes; guarded by mu
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
	po := process.Options{Env: p.o.Env, Dir: p.o.Dir, AddressSpace: p.o.Memory, MaxFiles: p.o.Files, FileSize: p.o.FileSize, Groups: p.o.Groups, Owner: p.o.Owner, Mark: p.o.Mark, Part: p.o.Part}
	var user *process.User
	if p.o.Wall != nil {
		b, err := p.o.Wall(Program{
			Path: program, Args: args, Dir: p.o.Dir, Env: p.o.Env, Terminal: p.o.Terminal != nil, Memory: p.o.Memory, Files: p.o.Files, FileSize: p.o.FileSize,
		})
		if err != nil {
			return err
		}
		if b.Done != nil {
			defer b.Done()
		}
		program, args, po.Confine, po.Confined, po.ExtraFiles = b.Path, b.Args, b.Thread, b.Name, b.Files
		if po.Env = append(slices.Clip(po.Env), b.Env...); b.Sealed {
			po.Env, po.AddressSpace, po.MaxFiles, po.FileSize = b.Env, 0, 0, 0
		}
		p.signal, p.over, user = b.Signal, b.Over, b.User
		if !b.Becomes {
			po.User = user
		}
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
	if err == nil && user != nil {
		err = hand(theirs, user)
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

// hand gives descriptors to whom the process runs as: a program that opens /dev/stdout anew is
// asked for the permissions of the pipe.
func hand(all []*os.File, u *process.User) error {
	for _, f := range all {
		if err := f.Chown(u.UID, u.GID); err != nil {
			return fmt.Errorf("hand its output to user %d: %w", u.UID, err)
		}
	}
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
		if n > 0 && p.mayPrint(n) {
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

// mayPrint counts output, and ends the process for which it is too much.
func (p *Process) mayPrint(n int) bool {
	if p.o.Output <= 0 {
		return true
	}
	p.mu.Lock()
	p.printed += int64(n)
	over := p.printed > p.o.Output
	if over && p.reason == "" {
		p.reason = fmt.Sprintf("ResourceLimitExceeded: output: it printed more than %d bytes", p.o.Output)
	}
	p.mu.Unlock()
	if over {
		_ = p.p.Stop(context.Background(), process.StopOptions{Grace: -1}) // one that cannot be killed prints to no one
	}
	return !over
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
	if p.over != nil {
		p.over()
	}
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
	p.exit = exitOf(p.o, p.p.Err(), reason)
	p.exit.Incomplete = lacks
	if p.exit.Reason == "" && p.o.Killed != nil && killed(p.p.Err()) {
		p.exit.Reason = p.o.Killed(p.p.PID())
	}
	_ = p.log.end(p.exit) // of a process that was closed no one asks
}

// shellSignal is what a program adds to the number of a signal that has ended another one, as
// shells do, and what runs a sandbox.
const shellSignal = 128

// tooLong is the signal for a file that would become longer than it may (SIGXFSZ).
const tooLong = 25

// killed reports whether a process, or what it waited for, was ended by a signal that none can
// heed.
func killed(err error) bool {
	const kill = 9 // SIGKILL
	exit, ok := errors.AsType[*process.ExitError](err)
	return ok && (exit.Signal == kill || exit.Code == shellSignal+kill)
}

func exitOf(o Options, err error, reason string) Exit {
	exit, ok := errors.AsType[*process.ExitError](err)
	switch {
	case err == nil:
		return Exit{Reason: reason}
	case ok:
		if reason == "" && o.FileSize > 0 && (exit.Signal == tooLong || exit.Code == shellSignal+tooLong) {
			reason = fmt.Sprintf("ResourceLimitExceeded: disk: a file would have become longer than %d bytes", o.FileSize)
		}
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

// Followed reports whether somebody reads what the process prints, as who waits for its end does.
func (p *Process) Followed() bool { return p.log.followed() }

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
	if p.signal != nil && grace >= 0 {
		p.ask(ctx, cmp.Or(grace, usualGrace))
		grace = -1
	}
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

// usualGrace is how long a process has to end after SIGTERM.
const usualGrace = 2 * time.Second

// ask asks a process to end that hears of a signal by another way than its group, and waits a
// while for that.
func (p *Process) ask(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.signal(ctx, int(syscall.SIGTERM)) != nil { // it has not begun, or is ending
		return
	}
	select {
	case <-p.p.Done():
	case <-ctx.Done():
	}
}

// Close removes what is kept of a process that has ended; it ends one that has not.
func (p *Process) Close() error {
	err := p.Stop(context.Background(), "it was closed", -1)
	p.end()
	return errors.Join(err, p.log.close())
}

var _ io.Closer = (*Process)(nil)
