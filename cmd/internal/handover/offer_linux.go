package handover

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// firstWord is how long one who connects has to say what it wants.
var firstWord = opportunity.Budget{Opportunity: 5 * time.Second}

// Offer hears successors. Make it with [Begin].
type Offer struct {
	o    Options
	l    *net.UnixListener
	dir  *os.File
	path string
	me   process.Identity

	life   context.Context
	end    context.CancelFunc
	joined sync.WaitGroup
	gone   chan *Left // one: when the server has left

	mu   sync.Mutex
	with int // the process of the successor that is heard, 0: none; guarded by mu
}

// Left is a server that has left, and whose successor has not yet said that it serves.
type Left struct {
	w    wire
	who  process.Identity
	once sync.Once
}

// Begin begins to hear successors. They come to a socket that only this user reaches.
func Begin(o Options) (*Offer, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &Offer{o: o, path: SocketFile(o.Dir, os.Getpid()), gone: make(chan *Left, 1)}
	var err error
	if f.me, err = process.Identify(os.Getpid()); err != nil {
		return nil, fmt.Errorf("hear successors: %w", err)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("hear successors: %w", err)
	}
	if f.dir, err = openFolder(o.Dir); err != nil {
		return nil, err
	}
	_ = os.Remove(f.path) // of a process that had this number
	// By way of the open folder: the path may be longer than that of a socket may be.
	at := SocketFile(fmt.Sprintf("/proc/self/fd/%d", f.dir.Fd()), os.Getpid())
	if f.l, err = net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"}); err != nil {
		return nil, errors.Join(fmt.Errorf("hear successors: %w", err), f.dir.Close())
	}
	f.l.SetUnlinkOnClose(false) // Close does it, by its real path
	if err := os.Chmod(f.path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("hear successors: %w", err), f.l.Close(), f.dir.Close())
	}
	f.life, f.end = context.WithCancel(context.Background())
	f.joined.Go(f.accept) // ends with Close
	return f, nil
}

// openFolder opens a folder that is this user's alone.
func openFolder(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the server: %w", err)
	}
	if info, err := d.Stat(); err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		_ = d.Close()
		return nil, refusedf("others may enter %s", dir)
	}
	return d, nil
}

func (f *Offer) accept() {
	for {
		conn, err := f.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors are left, say
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-f.life.Done():
				return
			}
		}
		f.joined.Go(func() { // ends with Close, or with the one who came
			if !f.hear(wire{conn}) {
				_ = conn.Close()
			}
		})
	}
}

// hear serves one who has come, and reports whether the server has left to it.
func (f *Offer) hear(w wire) (gone bool) {
	who, err := f.greet(w)
	if err == nil {
		err = f.present(w)
		defer func() {
			if !gone { // else there is no other successor
				f.free()
			}
		}()
	}
	for err == nil {
		var m message
		if m, err = w.receive(f.life); err != nil {
			break
		}
		m.close()
		if m.Kind != take {
			err = refusedf("%q was not asked for at this step", m.Kind)
			break
		}
		if gone, err = f.leave(w, who); gone {
			return true
		}
	}
	if no, is := errors.AsType[*RefusedError](err); is {
		_ = w.send(message{Kind: refused, Version: Version, Program: f.o.Program, Reason: no.Reason}) // it may have gone
		f.o.Logger.Info("a successor was refused", "process", who.PID, "why", no.Reason)
	} else if f.life.Err() == nil {
		f.o.Logger.Info("a successor has gone", "process", who.PID, "err", err)
	}
	return false
}

// greet hears who it is, and what it can do.
func (f *Offer) greet(w wire) (process.Identity, error) {
	who, err := w.peer()
	if err != nil {
		return who, err
	}
	ctx, done := opportunity.Within(f.life, firstWord, opportunity.Processes(who))
	m, err := w.receive(ctx)
	done()
	m.close()
	switch {
	case err != nil:
		return who, err
	case m.Kind != hello:
		return who, refusedf("%q is no hello", m.Kind)
	case subtle.ConstantTimeCompare([]byte(m.Token), []byte(f.o.Token)) != 1:
		return who, refusedf("the token is wrong")
	case m.PID != who.PID || m.Start != who.Start:
		return who, refusedf("it is not the process that it says it is")
	case m.Version != Version:
		return who, refusedf("it speaks version %d of the handover (%s), and this server version %d (%s): end this one, and start that", m.Version, m.Program, Version, f.o.Program)
	}
	for _, need := range f.o.Needs {
		if !slices.Contains(m.Knows, need) {
			return who, refusedf("it (%s) does not know %s, which this server (%s) would leave to it: end this one, and start that", m.Program, need, f.o.Program)
		}
	}
	if with := f.begin(who.PID); with != 0 {
		return who, refusedf("process %d is about to replace it", with)
	}
	if f.o.Refuse != nil {
		if why := f.o.Refuse(); why != "" {
			f.free()
			return who, refusedf("%s", why)
		}
	}
	return who, nil
}

// begin makes a process the successor that is heard, unless another one is: it returns that.
func (f *Offer) begin(pid int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.with == 0 {
		f.with = pid
		return 0
	}
	return f.with
}

func (f *Offer) free() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.with = 0
}

// present offers the listeners.
func (f *Offer) present(w wire) error {
	files, err := f.o.Listeners()
	if err != nil {
		return refusedf("%v", err)
	}
	m := message{Kind: offer, Version: Version, Program: f.o.Program, Given: &f.o.Given, files: files}
	defer m.close()
	return w.send(m)
}

// leave leaves the server to the one who is ready, and reports whether it has.
func (f *Offer) leave(w wire, who process.Identity) (bool, error) {
	file, err := f.o.Leave(f.life)
	if waits, is := errors.AsType[*BusyError](err); is {
		return false, w.send(message{Kind: busy, Reason: waits.Reason})
	}
	if err != nil {
		if _, is := errors.AsType[*RefusedError](err); !is {
			err = refusedf("%v", err)
		}
		return false, err
	}
	m := message{Kind: left}
	if file != nil {
		m.files = append(m.files, file)
	}
	_ = w.send(m) // one who has gone is seen by Wait
	f.gone <- &Left{w: w, who: who}
	return true, nil
}

// Gone has the Left of the server once it has left: one, at most.
func (f *Offer) Gone() <-chan *Left { return f.gone }

// Close hears nobody any more, and returns when nobody is heard.
func (f *Offer) Close() error {
	f.end()
	err := f.l.Close()
	f.joined.Wait()
	if e := os.Remove(f.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, f.dir.Close())
}

// PID is the process of the successor.
func (l *Left) PID() int { return l.who.PID }

// Wait returns nil when the successor has said that it serves. The error matches [ErrEnded]
// when its process has ended before, and everything is the server's again; it is the cause
// of ctx when that ended first, and then everything is the successor's.
func (l *Left) Wait(ctx context.Context) error {
	defer l.once.Do(func() { _ = l.w.conn.Close() })
	m, err := l.w.receive(ctx)
	m.close()
	switch {
	case err == nil && m.Kind == mine:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	// It lets go of what it has before it ends, at the latest by its end.
	if err := process.Await(ctx, l.who); err != nil {
		return err
	}
	return ErrEnded
}
