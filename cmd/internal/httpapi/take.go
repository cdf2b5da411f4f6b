package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/eventlog"
	"github.com/coppice-run/coppice/messages"
)

// imported is what a server before this one has left, read from what Export wrote.
type imported struct {
	head leftServer
	in   *bufio.Reader
}

// read begins to read it. The error says that it cannot be understood.
func read(r io.Reader) (*imported, error) {
	i := &imported{in: bufio.NewReaderSize(r, 1<<16)}
	if err := i.line(&i.head); err != nil {
		return nil, err
	}
	if i.head.Version != ExportVersion {
		return nil, fmt.Errorf("what the server before this one has left is of version %d, and this one knows %d", i.head.Version, ExportVersion)
	}
	return i, nil
}

// raw reads a line.
func (i *imported) raw() ([]byte, error) {
	var line []byte
	for {
		part, err := i.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("read what the server before this one has left: %w", err)
		case len(line) > mostLine:
			return nil, errors.New("what the server before this one has left has a line that is too long")
		}
	}
}

func (i *imported) line(to any) error {
	data, err := i.raw()
	if err == nil {
		if err = json.Unmarshal(data, to); err != nil {
			err = fmt.Errorf("read what the server before this one has left: %w", err)
		}
	}
	return err
}

// Left is what a server before this one has left. A nil one is nothing.
type Left struct {
	in    *imported
	ahead []*whole
	err   error         // of what was read ahead
	done  chan struct{} // closed once nothing more is
}

// whole is an execution that was left, with those of its events that were read ahead.
type whole struct {
	leftExecution
	entries [][]byte
}

// mostAhead is how many bytes of events are read ahead of TakeOver.
const mostAhead = 32 << 20

// ReadLeft begins to read what Export wrote, so that it is known by the time that the host
// stands. Close, or TakeOver, waits for who reads.
func ReadLeft(from io.Reader) *Left {
	l := &Left{done: make(chan struct{})}
	go func() { // done is its join
		defer close(l.done)
		if l.in, l.err = read(from); l.err != nil {
			return
		}
		for size := 0; len(l.ahead) < l.in.head.Executions && size < mostAhead; {
			one, err := l.in.next()
			if err != nil {
				l.err = err
				return
			}
			for range one.Events {
				entry, err := l.in.raw()
				if err != nil {
					l.err = err
					return
				}
				one.entries, size = append(one.entries, entry), size+len(entry)
			}
			l.ahead = append(l.ahead, one)
		}
	}()
	return l
}

// Close waits until nothing is read any more: what it is read from may be closed then.
func (l *Left) Close() {
	if l != nil {
		<-l.done
	}
}

// next reads an execution, without its events.
func (i *imported) next() (*whole, error) {
	var w whole
	return &w, i.line(&w.leftExecution)
}

// execution returns one by its place, the next of those that were not read ahead.
func (l *Left) execution(n int) (*whole, error) {
	if n < len(l.ahead) {
		one := l.ahead[n]
		l.ahead[n] = nil
		return one, nil
	}
	return l.in.next()
}

// event returns an event of an execution, from what was read ahead or else from what is there.
func (l *Left) event(w *whole, n uint64) ([]byte, error) {
	if n >= uint64(len(w.entries)) {
		return l.in.raw()
	}
	entry := w.entries[n]
	w.entries[n] = nil // it is in its log from now on
	return entry, nil
}

// TakeOver goes on with what a server before this one has left: with the executions that it
// tells of in what Export wrote, and with those that the host knows alone, since that server
// was killed. left is nil where nothing was written. It is called once, before anything is
// served.
func (a *API) TakeOver(left *Left) error {
	kept := map[string]*coppice.KeptCall{}
	for _, k := range a.o.Host.Kept() {
		kept[k.ID] = k
	}
	if left != nil {
		if left.Close(); left.err != nil {
			return left.err
		}
		a.changes.from(left.in.head.Changes)
		for n := range left.in.head.Executions {
			one, err := left.execution(n)
			if err != nil {
				return err
			}
			if err := a.goOnWith(left, one, kept[one.Info.ID]); err != nil {
				return err
			}
			delete(kept, one.Info.ID)
		}
		a.pin(left.in.head.Pins)
	}
	for _, k := range a.o.Host.Kept() {
		if kept[k.ID] != nil {
			a.goOn(k)
		}
	}
	return nil
}

// pin pins the sessions that were.
func (a *API) pin(keys []messages.SessionKey) {
	for _, key := range keys {
		a.running.Go(func() { // ends with the call, at the latest with the tree
			if err := a.o.Host.Session(key.Session, coppice.In(key.Cwd), coppice.OnKernel(key.Kernel)).Pin(a.life, true); err != nil && a.life.Err() == nil {
				a.o.Logger.Warn("a session that was pinned is no longer", "session", key.String(), "err", err)
			}
		})
	}
}

// goOnWith goes on with one execution; k is what the host knows of it.
func (a *API) goOnWith(left *Left, one *whole, k *coppice.KeptCall) error {
	follows := k != nil && !one.Ended
	log := a.newLog()
	for n := range one.Events {
		entry, err := left.event(one, n)
		if err != nil {
			return err
		}
		if follows {
			continue // the host tells all of it again
		}
		to := log.Append
		if one.Ended && n+1 == one.Events {
			to = log.Finish
		}
		if err := to(func(uint64) ([]byte, error) { return entry, nil }); err != nil {
			return fmt.Errorf("keep the events of the execution %s: %w", one.Info.ID, err)
		}
	}
	if one.Ended {
		a.restore(one.leftExecution, log)
		if k != nil {
			a.o.Host.Forget(k)
		}
		return nil
	}
	info, came := one.Info, one.Info.Result
	info.Result = nil
	run := func(context.Context, *execution, func()) (messages.Result, messages.RawJSON, error) { // nothing goes on with it
		if came == nil {
			return messages.Result{}, nil, errors.New("the server was replaced, and nothing is known of the call")
		}
		return *came, nil, nil
	}
	switch {
	case follows:
		run = func(ctx context.Context, x *execution, _ func()) (messages.Result, messages.RawJSON, error) {
			return a.follows(ctx, x, k)
		}
	case came != nil && one.Wanted && unsent(came.Progress.Reach):
		var e client.Execute
		if err := json.Unmarshal([]byte(one.Asked), &e); err != nil || info.Kind != client.KindCall {
			break
		}
		if again, err := a.task(e); err == nil {
			run = again // nothing of it had begun
		}
	}
	x, _, err := a.addTo(log, trace.SpanContext{}, info, one.Asked, func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error) {
		has := false
		place := func() {
			if !has {
				has = true
				queued()
			}
		}
		if follows {
			x.follows.Store(true)
			place()
		}
		result, report, err := run(ctx, x, place)
		place() // it was promised a result, by the server before this one
		return result, report, err
	})
	if err != nil {
		return err
	}
	<-x.settled // so that those of a session keep their order
	return nil
}

// unsent reports whether a call that came so far has reached no kernel, so that nothing of it
// can have run.
func unsent(r messages.Reach) bool {
	return r == messages.ReachUnsent || r == messages.ReachTurn || r == messages.ReachPlace || r == messages.ReachKernel
}

// restore puts an execution into the table that has ended.
func (a *API) restore(one leftExecution, log *eventlog.Log) {
	x := &execution{
		log: log, cancel: func() {}, ended: make(chan struct{}), settled: make(chan struct{}), returned: make(chan struct{}),
		asked: one.Asked, code: one.Code, info: one.Info, most: a.o.LogMax,
	}
	x.told.Store(one.Told)
	close(x.settled)
	close(x.ended)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.table[x.info.ID] = x
	a.order = append(a.order, x)
}
