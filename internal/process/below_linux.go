package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// kid is a child below a keeper.
type kid struct {
	keeper       *keeper
	pid          int
	done         chan struct{} // closed when its end is known; the zombie stays until it is reaped
	code, signal int           // written before done is closed
	lost         bool          // with its keeper; written before done is closed
}

// spawn starts a child.
func (k *keeper) spawn(o Options) (*Process, error) {
	if o.Mark == 0 {
		o.Mark = k.mark
	}
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("start %s: %w", o.Path, err)
		}
	}
	out, err := connect(o)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	defer out.handedOver()
	how, join := "group", strconv.Itoa(len(o.Groups))
	switch {
	case o.OutliveHost:
		how = "session"
	case o.Terminal != nil:
		how = "terminal"
	case o.ShareGroup:
		how = "share"
	}
	files := slices.Concat(out.standard, o.ExtraFiles)
	for _, dir := range o.Groups {
		entry, err := joinGroup(dir)
		if err != nil {
			out.close()
			return nil, fmt.Errorf("start %s: enter its control group: %w", o.Path, err)
		}
		defer func() { _ = entry.Close() }()
		files = append(files, entry)
	}
	words := append([]string{"spawn", "", how, join, markWord(o), limits(o), userWord(o.User), dir, o.Path, strconv.Itoa(1 + len(o.Args)), o.Path}, o.Args...)
	words = append(words, o.Env...)
	if strings.ContainsRune(strings.Join(words, ""), 0) {
		out.close()
		return nil, refusal(o.Path, int(unix.EINVAL), stepExec)
	}
	asked := k.order(words, files)
	switch {
	case asked.kid != nil:
		return keep(asked.kid, out, o)
	case asked.step != "":
		out.close()
		return nil, refusal(o.Path, asked.errno, asked.step)
	default:
		out.close()
		return nil, errNoKeeper
	}
}

// order asks for a child and waits for the answer.
func (k *keeper) order(words []string, files []*os.File) *order {
	asked := &order{begun: make(chan struct{}), done: make(chan struct{})}
	k.mu.Lock()
	if k.quiet {
		k.mu.Unlock()
		return asked
	}
	k.last++
	words[1] = strconv.Itoa(k.last)
	k.orders[k.last] = asked
	k.mu.Unlock()
	if k.send(words, files) != nil {
		k.kill()
	}
	k.await(asked.begun)
	if !endsWithin(context.Background(), k.startWait, asked.done, k.identity()) {
		k.drop(words[1], asked)
	}
	<-asked.done
	return asked
}

// drop gives up a child that does not become its program: its folder or its program may be
// on a file system that hangs. The others below the keeper are not to end for that.
func (k *keeper) drop(number string, asked *order) {
	n, _ := strconv.Atoi(number)
	k.mu.Lock()
	given := k.orders[n] == asked // else its answer has just come
	if given {
		delete(k.orders, n)
		asked.errno, asked.step = int(unix.ETIMEDOUT), stepBegin
		asked.close()
	}
	k.mu.Unlock()
	if given && k.send([]string{"drop", number}, nil) != nil {
		k.kill()
	}
}

// keep makes a process of a child below a keeper.
func keep(child *kid, out *wires, o Options) (*Process, error) {
	p := &Process{below: below{child, out}, ownGroup: !o.ShareGroup || o.OutliveHost || o.Terminal != nil, done: make(chan struct{})}
	// The child is not reaped before this process says so: its number is its own.
	p.handle, _ = os.FindProcess(child.pid) // never fails on Unix
	return p.begin(o)
}

// below is how a process is held that has an owner.
type below struct {
	kid   *kid
	wires *wires
}

// waitBelow waits for the end of a child of an owner, and says how it was.
func (p *Process) waitBelow() error {
	child := p.below.kid
	c, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // ends with the child, or with cancel; ended is its join
		defer close(ended)
		_ = Await(c, p.id) // what ended it is asked below
	}()
	select {
	case <-child.done:
	case <-ended: // its owner is to say so at once
		child.keeper.await(child.done)
	}
	cancel()
	<-ended
	if child.lost {
		p.bury()
	} else {
		p.closeGroup()
	}
	_ = child.keeper.send([]string{"reap", strconv.Itoa(child.pid)}, nil) // of one that is gone, nothing is there to reap
	_ = p.handle.Release()
	p.below.wires.drain()
	if child.code == 0 && child.signal == 0 {
		return nil
	}
	e := &ExitError{Code: child.code, Signal: child.signal}
	if e.Signal != 0 {
		e.Name = syscall.Signal(e.Signal).String()
	}
	return e
}

// bury ends what is left of a child whose owner has ended before it: the system has
// killed it, unless it had rights of its own.
func (p *Process) bury() {
	_ = p.handle.Kill() // a handle of the process, not of its number
	c, cancel := context.WithTimeout(context.Background(), killWait)
	defer cancel()
	_ = Await(c, p.id) // one that cannot be killed is said to have been
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if _, err := Identify(p.id.PID); p.ownGroup && errors.Is(err, ErrNoProcess) {
		killGroup(p.id.PID) // while it has members no one else gets its number
	}
}

func appendNumbers(b []byte, numbers ...uint32) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

// joinGroup opens what a process writes to that enters a control group.
func joinGroup(dir *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "cgroup.procs"), nil
}

// wires are the standard descriptors of a child below an owner, as os/exec makes them
// for others.
type wires struct {
	reading

	standard []*os.File // 0, 1 and 2 of the child
	null     []*os.File // those of them that are the null device
}

// connect opens them.
func connect(o Options) (_ *wires, err error) {
	w := &wires{}
	defer func() {
		if err != nil {
			w.handedOver()
			w.close()
		}
	}()
	if o.Terminal != nil {
		w.standard = append(w.standard, o.Terminal, o.Terminal, o.Terminal)
		return w, nil
	}
	stdin := o.Stdin
	if stdin == nil {
		if stdin, err = w.open(os.O_RDONLY); err != nil {
			return nil, err
		}
	}
	out, errs := o.Log, o.Log
	if o.Log == nil {
		if out, errs, err = w.both(o.Stdout, o.Stderr, o.Output, o.Errors); err != nil {
			return nil, err
		}
	}
	w.standard = append(w.standard, stdin)
	for _, f := range []*os.File{out, errs} {
		if f == nil {
			if f, err = w.open(os.O_WRONLY); err != nil {
				return nil, err
			}
		}
		w.standard = append(w.standard, f)
	}
	return w, nil
}

// open opens the null device.
func (w *wires) open(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		w.null = append(w.null, f)
	}
	return f, err
}

// handedOver closes what the child has of its own by now, or never will have.
func (w *wires) handedOver() {
	w.reading.handedOver()
	for _, f := range w.null {
		_ = f.Close()
	}
	w.null = nil
}

// limits are those of a child, which it has before it becomes its program.
func limits(o Options) string {
	var all []string
	for _, l := range []struct {
		what int
		most uint64
	}{{rlimitFileSize, o.FileSize}, {unix.RLIMIT_NOFILE, o.MaxFiles}, {unix.RLIMIT_AS, o.AddressSpace}} {
		if l.most > 0 {
			all = append(all, strconv.Itoa(l.what)+"="+strconv.FormatUint(min(l.most, math.MaxInt64), 10))
		}
	}
	return strings.Join(all, " ")
}

// userWord is whom a child runs as, "" for the owner's: its number, that of its group, and those
// of its other groups.
func userWord(u *User) string {
	if u == nil {
		return ""
	}
	word := strconv.Itoa(u.UID) + ":" + strconv.Itoa(u.GID)
	for _, g := range u.Groups {
		word += ":" + strconv.Itoa(g)
	}
	return word
}

// markWord is the mark of a child, with its part before it where it has one.
func markWord(o Options) string {
	mark := strconv.FormatUint(uint64(o.Mark), 10)
	if o.Mark == 0 || o.Part == 0 {
		return mark
	}
	return strconv.FormatUint(uint64(o.Part), 10) + ":" + mark
}
