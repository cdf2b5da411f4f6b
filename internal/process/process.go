package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Options says what to start. Only Path is required.
type Options struct {
	// Path is the program, absolute: a relative path would be looked up against
	// whatever directory the host happens to be in.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the whole environment of the child. Unlike in os/exec, nil means
	// an empty environment: the host's own holds secrets.
	Env []string
	// Dir is the working directory; "" is the host's.
	Dir string
	// Stdin is read by the child; nil is the null device.
	Stdin *os.File
	// Stdout and Stderr take the output; nil throws it away. The same ring in
	// both places keeps the order in which the child wrote.
	Stdout, Stderr *Ring
	// Log takes stdout and stderr in place of the rings, without passing
	// through the host: for a child that outlives it.
	Log *os.File
	// Output and Errors are the child's stdout and stderr themselves, in place of the
	// rings: the end of a pipe that the caller reads as fast as it likes. The caller
	// closes its own copies.
	Output, Errors *os.File
	// Terminal is the side of a pseudoterminal that becomes the child's stdin, stdout
	// and stderr, and the terminal of a session of its own. The caller closes its copy.
	// Not on Windows.
	Terminal *os.File
	// ExtraFiles become the descriptors 3, 4, … of the child. The caller keeps
	// its own copies and closes them. Not on Windows.
	ExtraFiles []*os.File
	// ShareGroup leaves the child in the host's process group. Signals then
	// reach the child alone.
	ShareGroup bool
	// OutliveHost lets the child live on when the host dies, in a session of
	// its own.
	OutliveHost bool
	// Confine is called on an operating system thread of the child's own, right
	// before the child is forked from it, and may change what a child inherits
	// from its thread: that thread serves for nothing else and ends with the
	// child. nil: none. Only on Linux do children inherit so.
	Confine func() error
	// Confined names what Confine does: children of one Owner that are confined alike
	// share what owns them. "": each has its own.
	Confined string
	// User is whom the child runs as. nil: as the host does. It takes the rights to
	// become another, and Linux: elsewhere Start fails.
	User *User
	// Groups are the open folders of control groups that the child begins in: one of
	// version 2, or of version 1 one in each hierarchy, which it enters without an Owner only
	// when it has begun. nil: the host's. The caller closes them. Start fails where the system
	// cannot do that; outside Linux they are ignored.
	Groups []*os.File
	// NoFile raises the child's soft limit of open files to this number or to
	// its hard limit, whichever is lower, and never lowers it. 0 leaves it. It
	// is an attempt: where the system refuses, and outside Linux, the limit
	// stays as it is.
	NoFile uint64
	// The limits that follow hold from the child's first instruction where it has an Owner;
	// without one it may have run for an instant before they do.

	// AddressSpace limits the memory that the child, and each process that it
	// starts, may map, in bytes. 0: no limit. Start fails when the limit
	// cannot be set; outside Linux it is not, see [LimitsMemory].
	AddressSpace uint64
	// Owner owns the child and everything that it starts. nil, or where there can be no
	// owner: the child dies with the host, and what has left its group does not. A child
	// of an owner that may outlive its host does not.
	Owner *Owner
	// Mark is what the child, and everything that it starts, is known by, see [Marked].
	// 0: none. Below an owner the child has it before it runs anything.
	Mark Mark
	// Part is its part of what has the mark. 0: none.
	Part Part
	// MaxFiles limits how many files the child, and each process that it starts, may
	// have open at once. 0: the limit of the host. Start fails when the limit cannot be
	// set; outside Linux it is not.
	MaxFiles uint64
	// FileSize bounds how long a file the child, and what it starts, may make, in bytes. 0:
	// no limit; outside Linux there is none.
	FileSize uint64
}

// User is whom a child runs as.
type User struct {
	UID, GID int
	Groups   []int // besides GID
}

// Process is a child. The zero value is of no use; see [Start].
type Process struct {
	cmd      *exec.Cmd // nil when it has an owner
	read     *reading  // of its output; nil when it has an owner
	below    below     // how its owner holds it
	handle   *os.Process
	id       Identity
	ownGroup bool
	tied     bool       // forked by, and counted in, the host thread
	own      *ownThread // forked by a thread of its own; nil when not

	// mu guards ended: while it is held and ended is false, the pid and the
	// group belong to this child, because it was not reaped.
	mu    sync.Mutex
	ended bool

	done chan struct{} // closed by wait
	err  error         // written by wait before done is closed
}

// Start starts a child. It returns once the program was executed, or why it
// could not be.
func Start(o Options) (*Process, error) {
	if !filepath.IsAbs(o.Path) {
		return nil, fmt.Errorf("start %q: the path of the program is not absolute", o.Path)
	}
	if o.User != nil && !hasUsers {
		return nil, fmt.Errorf("start %s as user %d: %w", o.Path, o.User.UID, errors.ErrUnsupported)
	}
	if p, owned, err := o.Owner.start(o); owned {
		return p, err
	}
	env := make([]string, len(o.Env)) // never nil, which would mean the host's own
	copy(env, o.Env)
	cmd := &exec.Cmd{
		Path:        o.Path,
		Args:        append([]string{o.Path}, o.Args...),
		Env:         env,
		Dir:         o.Dir,
		ExtraFiles:  o.ExtraFiles,
		SysProcAttr: sysProcAttr(o),
	}
	// A nil *os.File or *Ring in an interface is not a nil interface.
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	read, err := connectOutput(cmd, o)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	p := &Process{cmd: cmd, read: read, ownGroup: !o.ShareGroup || o.OutliveHost || o.Terminal != nil, tied: !o.OutliveHost, done: make(chan struct{})}
	start := cmd.Start
	switch {
	case o.Confine != nil:
		p.own, p.tied = newOwnThread(), false
		start = func() error { return p.own.start(cmd, o.Confine) }
	case p.tied:
		start = func() error { return theHostThread.start(cmd) }
	}
	err = start()
	read.handedOver()
	if err != nil {
		read.close()
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	p.handle = cmd.Process
	return p.begin(o)
}

// connectOutput says where the output of cmd goes.
func connectOutput(cmd *exec.Cmd, o Options) (*reading, error) {
	r := &reading{}
	switch {
	case o.Log != nil:
		cmd.Stdout, cmd.Stderr = o.Log, o.Log
		if o.Terminal != nil {
			cmd.Stdin = o.Terminal
		}
		return r, nil
	case o.Terminal != nil:
		cmd.Stdin, cmd.Stdout, cmd.Stderr = o.Terminal, o.Terminal, o.Terminal
		return r, nil
	}
	out, errs, err := r.both(o.Stdout, o.Stderr, o.Output, o.Errors)
	if err != nil {
		r.handedOver()
		r.close()
		return nil, err
	}
	// A nil *os.File in an interface is not a nil interface.
	if out != nil {
		cmd.Stdout = out
	}
	if errs != nil {
		cmd.Stderr = errs
	}
	return r, nil
}

// begin is what follows when the child runs.
func (p *Process) begin(o Options) (*Process, error) {
	// The child is not reaped yet, so that its pid is its own and can be asked
	// about. Where start times cannot be had, Start stays empty.
	var known error
	p.id, known = Identify(p.handle.Pid)
	p.id.PID = p.handle.Pid
	if o.NoFile > 0 {
		raiseNoFile(p.id.PID, o.NoFile)
	}
	limited := limit(p.id.PID, o)
	if limited == nil && p.cmd != nil { // below an owner it has entered them before
		limited = enterGroups(p.id.PID, o.Groups)
	}
	if limited == nil && known != nil && !errors.Is(known, ErrNoProcess) && !errors.Is(known, ErrUnsupported) {
		limited = known // nobody could tell it from another process later
	}
	if o.Mark != 0 {
		_ = SetMark(p.id.PID, o.Mark) // without one it is found among the descendants, as long as it is one
		if o.Part != 0 {
			_ = SetPart(p.id.PID, o.Part) // as said
		}
	}
	go p.wait() // ends when the child does; Done is its join
	if limited != nil {
		p.kill()
		<-p.done
		return nil, fmt.Errorf("start %s: %w", o.Path, limited)
	}
	return p, nil
}

// limit sets the limits that a child was given.
func limit(pid int, o Options) error {
	if o.AddressSpace > 0 {
		if err := limitMemory(pid, o.AddressSpace); err != nil {
			return fmt.Errorf("limit its memory to %d bytes: %w", o.AddressSpace, err)
		}
	}
	if o.MaxFiles > 0 {
		if err := limitFiles(pid, o.MaxFiles); err != nil {
			return fmt.Errorf("limit its open files to %d: %w", o.MaxFiles, err)
		}
	}
	if o.FileSize > 0 {
		if err := LimitFileSize(pid, o.FileSize); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return nil
}

// wait reaps the child. It is the only goroutine that does.
func (p *Process) wait() {
	defer close(p.done)
	if p.tied {
		defer theHostThread.release()
	}
	if p.own != nil {
		defer p.own.release()
	}
	if p.cmd == nil {
		p.err = p.waitBelow()
		return
	}
	var err error
	if awaitExit(p.id.PID) {
		// The zombie holds the pid and the number of the group until it is reaped.
		p.closeGroup()
		err = p.cmd.Wait()
	} else {
		err = p.cmd.Wait()
		p.closeGroup()
	}
	p.read.drain()
	if p.cmd.ProcessState == nil {
		p.err = fmt.Errorf("wait for process %d: %w", p.id.PID, err)
		return
	}
	if e := exitOf(p.cmd.ProcessState); e.Code != 0 {
		p.err = e
	}
}

// closeGroup kills what is left of the child's group and ends all signalling.
func (p *Process) closeGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.ownGroup {
		killGroup(p.id.PID)
	}
}

// Identity names the child. On systems without start times its Start is "".
func (p *Process) Identity() Identity { return p.id }

// PID returns the process id of the child, also after its end.
func (p *Process) PID() int { return p.id.PID }

// Done is closed when the child has ended, was reaped, and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended: nil while Done is open, nil after exit code 0,
// and an [*ExitError] after any other end.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Signal sends a signal to the child alone. It returns [os.ErrProcessDone]
// when the child has ended.
func (p *Process) Signal(s os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return os.ErrProcessDone
	}
	if err := p.handle.Signal(s); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, p.id.PID, err)
	}
	return nil
}

// SignalGroup sends a signal to the child and to what it has started in its process
// group; where the system has no groups, or the child shares the host's, to the child
// alone. It returns [os.ErrProcessDone] when the child has ended.
func (p *Process) SignalGroup(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return os.ErrProcessDone
	}
	err := signalGroup(p.id.PID, s)
	if !p.ownGroup || errors.Is(err, errors.ErrUnsupported) {
		err = p.handle.Signal(s)
	}
	if err != nil {
		return fmt.Errorf("send %v to the group of process %d: %w", s, p.id.PID, err)
	}
	return nil
}
