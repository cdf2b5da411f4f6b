package process

import (
	"io"
	"os"
	"sync"
	"time"
)

// wires are the standard descriptors of a child below an owner, as os/exec makes them
// for others.
type wires struct {
	theirs []*os.File // 0, 1 and 2 of the child
	own    []*os.File // those of theirs that were opened for it

	ours   []*os.File // the read ends of pipes
	copies sync.WaitGroup
	copied chan struct{} // closed when all pipes were read to their end
}

// connect opens them.
func connect(o Options) (_ *wires, err error) {
	w := &wires{copied: make(chan struct{})}
	defer func() {
		if err != nil {
			w.handedOver()
			w.close()
		}
	}()
	stdin := o.Stdin
	if stdin == nil {
		if stdin, err = w.open(os.O_RDONLY); err != nil {
			return nil, err
		}
	}
	w.theirs = append(w.theirs, stdin)
	if o.Log != nil {
		w.theirs = append(w.theirs, o.Log, o.Log)
	} else {
		out, err := w.to(o.Stdout)
		if err != nil {
			return nil, err
		}
		errs := out
		if o.Stderr != o.Stdout {
			if errs, err = w.to(o.Stderr); err != nil {
				return nil, err
			}
		}
		w.theirs = append(w.theirs, out, errs)
	}
	go func() { // ends with the pipes, which close sees to; copied is its join
		w.copies.Wait()
		close(w.copied)
	}()
	return w, nil
}

// open opens the null device.
func (w *wires) open(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		w.own = append(w.own, f)
	}
	return f, err
}

// to opens what the child writes to when its output goes to a ring.
func (w *wires) to(ring *Ring) (*os.File, error) {
	if ring == nil {
		return w.open(os.O_WRONLY)
	}
	r, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	w.own, w.ours = append(w.own, theirs), append(w.ours, r)
	w.copies.Go(func() { _, _ = io.Copy(ring, r) }) // a ring takes everything
	return theirs, nil
}

// handedOver closes what the child has of its own by now, or never will have.
func (w *wires) handedOver() {
	for _, f := range w.own {
		_ = f.Close()
	}
	w.own = nil
}

// drain reads what the child has printed before it ended. Who has inherited the pipe may
// hold it open for ever.
func (w *wires) drain() {
	timer := time.NewTimer(drainDelay)
	defer timer.Stop()
	select {
	case <-w.copied:
	case <-timer.C:
	}
	w.close()
}

// close ends the reading.
func (w *wires) close() {
	for _, r := range w.ours {
		_ = r.Close()
	}
	w.copies.Wait()
}
