package process

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// drainDelay is how long the output of a child is waited for after its end: what it has
// started may write on, and may hold the pipe open for ever. What lies in the pipe by
// then is read all the same.
const drainDelay = 500 * time.Millisecond

// mostLeft bounds what is read of a pipe whose writers go on after that. What a child
// wrote before it ended is less: no pipe holds more.
const mostLeft = 1 << 20

// reading is the output of one child on its way to rings: a pipe for each, and a
// goroutine that reads it. It ends with drain or close, which join the goroutines.
type reading struct {
	theirs []*os.File // the child's ends, until they are handed over
	ours   []*os.File
	copies sync.WaitGroup
}

// both returns what the child writes to, nil for nothing: what is given, or the way to a
// ring. The same ring in both places gets one pipe, which keeps the order.
func (r *reading) both(stdout, stderr *Ring, out, errs *os.File) (_, _ *os.File, err error) {
	same := stdout == stderr && out == nil
	if out == nil {
		if out, err = r.to(stdout); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case errs != nil:
	case same:
		errs = out
	default:
		errs, err = r.to(stderr)
	}
	return out, errs, err
}

// to begins to read into a ring and returns what a child is to write to; nil for no ring.
func (r *reading) to(ring *Ring) (*os.File, error) {
	if ring == nil {
		return nil, nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.theirs, r.ours = append(r.theirs, theirs), append(r.ours, ours)
	r.copies.Go(func() { // ends with the pipe, or with drain
		_, err := io.Copy(ring, ours)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			takeLeft(ring, ours, mostLeft)
		}
	})
	return theirs, nil
}

// handedOver closes the child's ends: it has its own by now, or never will.
func (r *reading) handedOver() {
	for _, f := range r.theirs {
		_ = f.Close()
	}
	r.theirs = nil
}

// drain reads all that the child wrote before it ended, however late that is: this
// process may have had no processor since. Of what others write to its pipes it reads
// what comes within drainDelay.
func (r *reading) drain() {
	if len(r.ours) == 0 {
		return
	}
	copied := make(chan struct{})
	go func() { // ends with the copies; drain does not return before that
		r.copies.Wait()
		close(copied)
	}()
	timer := time.NewTimer(drainDelay)
	defer timer.Stop()
	select {
	case <-copied:
	case <-timer.C:
		for _, f := range r.ours {
			if f.SetReadDeadline(time.Now()) != nil { // this system has none for pipes
				_ = f.Close()
			}
		}
		<-copied
	}
	r.close()
}

// close ends the reading.
func (r *reading) close() {
	for _, f := range r.ours {
		_ = f.Close()
	}
	r.copies.Wait()
}
