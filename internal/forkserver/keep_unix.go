//go:build unix

package forkserver

import (
	"fmt"
	"os"
	"syscall"

	"github.com/coppice-run/coppice/internal/process"
)

// newPipes copies the read ends of a session's output before it is handed over.
func newPipes(s *seat) (_ *pipes, err error) {
	p := &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for i, end := range []int{stdoutRead, stderrRead} {
		if p[i], err = duplicate(s.theirs[end]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// duplicate copies a descriptor, which stays as it is.
func duplicate(fd int) (*os.File, error) {
	syscall.ForkLock.RLock() // nothing may be forked before it closes on exec
	defer syscall.ForkLock.RUnlock()
	own, err := syscall.Dup(fd)
	if err != nil {
		return nil, fmt.Errorf("keep the end of a pipe: %w", err)
	}
	syscall.CloseOnExec(own)
	return os.NewFile(uintptr(own), "output"), nil
}

// kept is how many descriptors [Child.Keep] hands out.
const kept = 4

// Adopt goes on with the session of an earlier host, whose process has this identity, by
// the descriptors that [Child.Keep] has handed out there, in that order. They are the
// child's from now on, also when Adopt fails: then it closes them. The end of the child
// is a [*LostError], as that of all whose fork server has ended before them. When the
// process has ended already, Adopt fails with that.
func Adopt(id process.Identity, files []*os.File) (_ *Child, err error) {
	b := &copied{end: newEnding(), kept: true, id: id}
	defer func() {
		if err != nil {
			closeAll(files)
			b.close()
		}
	}()
	if len(files) != kept {
		return nil, fmt.Errorf("go on with process %d: %d descriptors came, not %d", id.PID, len(files), kept)
	}
	if process.Ended(id) {
		return nil, &LostError{PID: id.PID}
	}
	for i, end := range []**pipeEnd{&b.stdout, &b.stderr} {
		if *end, err = endOf(files[i+2]); err != nil {
			return nil, err
		}
	}
	c, err := newChild(files[0], files[1], b)
	if err != nil {
		return nil, err
	}
	c.keeps = true // as it was there
	closeAll(files[2:])
	go b.watch(id) // ends with the process; Done is its join
	return c, nil
}

// endOf is the end of a pipe that f is, which stays the caller's.
func endOf(f *os.File) (end *pipeEnd, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("use a pipe: %w", err)
	}
	// Not f.Fd, which may have the pipe block: the session reads it, too.
	if e := raw.Control(func(fd uintptr) { end, err = newPipeEnd(int(fd)) }); e != nil {
		err = e
	}
	return end, err
}
