package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// theHostThread forks every child that dies with the host.
var theHostThread hostThread

// hostThread owns one goroutine, locked to one operating system thread, while
// at least one child that it forked lives.
//
// PR_SET_PDEATHSIG follows the thread that forked. A child forked from an
// ordinary goroutine would be killed when the runtime ends that goroutine's
// thread, for example because another goroutine returned while locked to it.
type hostThread struct {
	mu       sync.Mutex
	children int             // forked and not yet reaped, and those being forked
	jobs     chan hostJob    // nil while there is no goroutine
	ended    <-chan struct{} // closed when the goroutine of jobs is gone
}

type hostJob struct {
	cmd   *exec.Cmd
	reply chan<- error
}

// start forks cmd on the host thread. After a nil return the caller owes one
// release, when the child was reaped.
func (h *hostThread) start(cmd *exec.Cmd) error {
	h.mu.Lock()
	h.children++
	if h.jobs == nil {
		jobs, ended := make(chan hostJob), make(chan struct{})
		h.jobs, h.ended = jobs, ended
		go serveHostThread(jobs, ended) // ends when release closes jobs, which waits for it
	}
	jobs := h.jobs
	h.mu.Unlock()

	reply := make(chan error, 1)
	jobs <- hostJob{cmd: cmd, reply: reply} // not closed: children counts this one
	err := <-reply
	if err != nil {
		h.release()
	}
	return err
}

// release gives up one child. The last one ends the goroutine.
func (h *hostThread) release() {
	h.mu.Lock()
	h.children--
	var ended <-chan struct{}
	if h.children == 0 {
		close(h.jobs)
		ended = h.ended
		h.jobs, h.ended = nil, nil
	}
	h.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func serveHostThread(jobs <-chan hostJob, ended chan<- struct{}) {
	defer close(ended)
	runtime.LockOSThread()
	// No child is left when the loop ends, so that the thread may go back.
	defer runtime.UnlockOSThread()
	for j := range jobs {
		j.reply <- j.cmd.Start()
	}
}

// ownThread forks one child, on a thread that was changed for it. The thread
// stays until the child has ended, which would else be killed with it.
type ownThread struct {
	over  chan struct{} // closed when the child was reaped
	ended chan struct{} // closed when the goroutine is gone
}

func newOwnThread() *ownThread {
	return &ownThread{over: make(chan struct{}), ended: make(chan struct{})}
}

// start changes the thread and forks cmd. After a nil return the caller owes one
// release.
func (t *ownThread) start(cmd *exec.Cmd, change func() error) error {
	reply := make(chan error, 1)
	locked := make(chan struct{})
	serve := func() {
		defer close(t.ended)
		runtime.LockOSThread() // and never unlocked: the runtime throws the thread away
		close(locked)
		err := change()
		if err == nil {
			err = cmd.Start()
		}
		reply <- err
		if err == nil {
			<-t.over
		}
	}
	go func() { // ends at once, or with release when it serves; ended is its join
		runtime.LockOSThread()
		if !onMainThread() {
			serve() // and stays locked
			return
		}
		// The main thread stands for the whole process, and cannot be thrown away:
		// it is kept from the one that serves.
		go serve() // ends with release; ended is its join
		<-locked
		runtime.UnlockOSThread()
	}()
	err := <-reply
	if err != nil {
		<-t.ended
	}
	return err
}

// release ends the thread.
func (t *ownThread) release() {
	close(t.over)
	<-t.ended
}
