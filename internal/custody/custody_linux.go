package custody

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

//go:embed custodian.py
var script string

// Supported says whether this system has custodians.
const Supported = true

// Custody is what a host has in the hands of a custodian, until Leave or End.
type Custody struct {
	id        string
	folder    *folder
	lock      *os.File // held for as long as this is the host
	custodian process.Identity
	link      *link
	names     []string // when it was taken over

	done chan struct{} // closed when the custodian has let go, or was let go
	once sync.Once
	left chan struct{} // closed by the first Leave or End, before it asks
}

// Begin starts a custodian and returns when it keeps what it is given. The caller is its
// first host.
func Begin(ctx context.Context, o Options) (_ *Custody, err error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of what is kept: %w", err)
	}
	removeUnfinished(o.Dir)
	// The folder gets its name when it is locked: others take one that is not locked for
	// what a killed host has left.
	id := rand.Text()
	hidden := filepath.Join(o.Dir, unfinished(id))
	if err := os.Mkdir(hidden, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of what is kept: %w", err)
	}
	path := filepath.Join(o.Dir, id)
	c := &Custody{id: id, done: make(chan struct{}), left: make(chan struct{})}
	defer func() {
		if err != nil {
			c.release()
			_ = os.RemoveAll(hidden)
			_ = os.RemoveAll(path)
		}
	}()
	if c.folder, err = openFolder(o.Dir, filepath.Base(hidden)); err != nil {
		return nil, err
	}
	if c.lock, err = c.folder.lock(unix.O_CREAT); err != nil {
		return nil, fmt.Errorf("begin to keep sessions: %w", err)
	}
	if err := signIn(c.lock); err != nil {
		return nil, err
	}
	if err := os.Rename(hidden, path); err != nil {
		return nil, fmt.Errorf("begin to keep sessions: %w", err)
	}
	c.folder.path = path
	token := rand.Text() + rand.Text()
	if err := c.start(ctx, o, path, token); err != nil {
		return nil, fmt.Errorf("start the process that keeps sessions: %w", err)
	}
	data, err := json.Marshal(record{Custodian: c.custodian, Token: token})
	if err == nil {
		err = file.Write(filepath.Join(path, recordFile), append(data, '\n'), file.WriteOptions{})
	}
	if err != nil {
		c.link.close() // it ends without a host that has anything
		return nil, fmt.Errorf("begin to keep sessions: %w", err)
	}
	go c.watch()
	return c, nil
}

// start starts the custodian, which makes itself nobody's child.
func (c *Custody) start(ctx context.Context, o Options, path, token string) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "custodian"), os.NewFile(uintptr(fds[1]), "custodian")
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	conn, err := net.FileConn(ours) // a duplicate
	if err != nil {
		return fmt.Errorf("use a socket pair: %w", err)
	}
	p, err := process.Start(process.Options{
		Path: o.Python, Args: []string{"-I", "-S", "-c", script, "coppice-custodian"}, Dir: path, Stdin: theirs, OutliveHost: true,
	})
	_ = theirs.Close()
	if err != nil {
		_ = conn.Close()
		return err
	}
	c.link = newLink(conn.(*net.UnixConn))
	a, err := c.link.call(ctx, request{Token: token, Dir: path, KeepFor: o.KeepFor.Seconds()}, nil)
	if err == nil {
		c.custodian, err = process.Identify(a.PID)
	}
	if err != nil {
		c.link.close()
		_ = p.Stop(context.WithoutCancel(ctx), process.StopOptions{Grace: -1})
		return err
	}
	<-p.Done() // it has forked the custodian before that answered
	return nil
}

// Take takes a custody over: its custodian takes orders from this process from now on.
// The error is [ErrUsed] when another host has it, [ErrGone] when its custodian has ended, and a
// *[RefusedError] when one does not trust the other; then nothing has changed.
func Take(ctx context.Context, o Options, id string) (_ *Custody, err error) {
	o = o.withDefaults()
	c := &Custody{id: id, done: make(chan struct{}), left: make(chan struct{})}
	defer func() {
		if err != nil {
			c.release()
		}
	}()
	if c.folder, err = openFolder(o.Dir, id); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrGone
		}
		return nil, err
	}
	if c.lock, err = c.folder.await(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, ErrGone
		}
		return nil, err
	}
	r, err := c.folder.record()
	if err != nil {
		return nil, err
	}
	if process.Ended(r.Custodian) {
		return nil, ErrGone
	}
	if err := signIn(c.lock); err != nil {
		return nil, err
	}
	c.custodian = r.Custodian
	if err := c.reach(ctx, r, o); err != nil {
		return nil, err
	}
	go c.watch() // ends with the link; done is its join
	return c, nil
}

// ending bounds each wait for the end of a custodian that does not hear any more.
var ending = opportunity.Starting(time.Second, 0)

// reach has the custodian take orders from this process. One that does not hear, or says
// nothing, is ending, or has given up to wait for a host that got no processor: its end is
// waited for, since until then it looks as if it kept what it has let go of, and else it
// is asked again.
func (c *Custody) reach(ctx context.Context, r record, o Options) error {
	const tries = 3
	for n := 1; ; n++ {
		err := c.attach(ctx, r, o)
		if err == nil || !isSilent(err) {
			return err
		}
		bound, done := opportunity.Within(ctx, ending, opportunity.Processes(r.Custodian))
		ended := process.Await(bound, r.Custodian) == nil
		done()
		switch {
		case ended:
			return ErrGone
		case ctx.Err() != nil:
			return fmt.Errorf("reach the process that keeps sessions: %w", context.Cause(ctx))
		case n == tries:
			return fmt.Errorf("the process that keeps sessions (%d) lives, and does not answer: %s", r.Custodian.PID, err.Error()) // without its ErrGone, which would be untrue
		}
	}
}

// isSilent says that nobody has answered, and nothing has changed.
func isSilent(err error) bool {
	for _, e := range []error{ErrGone, syscall.ECONNREFUSED, syscall.ENOENT, syscall.EAGAIN, syscall.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// attach is one try of reach.
func (c *Custody) attach(ctx context.Context, r record, o Options) error {
	conn, err := c.folder.dial(ctx, r.Custodian)
	if err != nil {
		return err
	}
	c.link = newLink(conn)
	err = c.prove(ctx, r.Token, o)
	if err != nil {
		c.link.close()
	}
	return err
}

// prove tells the custodian who this process is, and shows it the lock.
func (c *Custody) prove(ctx context.Context, token string, o Options) error {
	me, err := process.Identify(os.Getpid())
	if err != nil {
		return fmt.Errorf("take over what is kept: %w", err)
	}
	a, err := c.link.call(ctx, request{Token: token, PID: me.PID, Start: me.Start, KeepFor: o.KeepFor.Seconds()}, []*os.File{c.lock})
	c.names = a.Names
	slices.Sort(c.names)
	return err
}

// watch tells the end of the link.
func (c *Custody) watch() {
	<-c.link.done
	close(c.done)
}

// release lets go of the folder, and of the lock.
func (c *Custody) release() {
	if c.lock != nil {
		_ = c.lock.Truncate(0) // this process lives on, and is the host no longer
		// Others have the open file, too: a custodian that was shown it and has not looked yet,
		// a child that is just being started.
		_ = unix.Flock(int(c.lock.Fd()), unix.LOCK_UN)
		_ = c.lock.Close()
	}
	if c.folder != nil {
		c.folder.close()
	}
}

// ID names the custody among those of its folder.
func (c *Custody) ID() string { return c.id }

// Dir is the folder of the custody, for files that belong to what is kept: those that are
// in it are removed with it.
func (c *Custody) Dir() string { return c.folder.path }

// Custodian is the process that keeps.
func (c *Custody) Custodian() process.Identity { return c.custodian }

// Names is what was kept when [Take] took the custody over, in order, without what is
// common.
func (c *Custody) Names() []string { return slices.Clone(c.names) }

// Put keeps a thing, in place of another of the same name, and returns when it is kept.
func (c *Custody) Put(ctx context.Context, i Item) error {
	if len(i.Files) > MostFiles || len(i.Note) > MostNote {
		return fmt.Errorf("keep %q: it has %d descriptors and a note of %d bytes, and may have %d and %d", i.Name, len(i.Files), len(i.Note), MostFiles, MostNote)
	}
	if _, err := c.link.call(ctx, request{Op: opPut, Name: i.Name, Note: i.Note, Common: i.Common}, i.Files); err != nil {
		return fmt.Errorf("keep %q: %w", i.Name, err)
	}
	return nil
}

// Note replaces the note of a thing that is kept.
func (c *Custody) Note(ctx context.Context, name string, note json.RawMessage) error {
	if len(note) > MostNote {
		return fmt.Errorf("note what is kept as %q: %d bytes, and %d are possible", name, len(note), MostNote)
	}
	if _, err := c.link.call(ctx, request{Op: opNote, Name: name, Note: note}, nil); err != nil {
		return fmt.Errorf("note what is kept as %q: %w", name, err)
	}
	return nil
}

// Drop lets go of a thing: the custodian closes its copies. It does nothing when nothing
// of that name is kept.
func (c *Custody) Drop(ctx context.Context, name string) error {
	if _, err := c.link.call(ctx, request{Op: opDrop, Name: name}, nil); err != nil {
		return fmt.Errorf("keep %q no longer: %w", name, err)
	}
	return nil
}

// Hand returns a thing that is kept, with descriptors that are the caller's. It stays in
// custody.
func (c *Custody) Hand(ctx context.Context, name string) (Item, error) {
	a, err := c.link.call(ctx, request{Op: opHand, Name: name}, nil)
	if err != nil {
		return Item{}, fmt.Errorf("take over %q: %w", name, err)
	}
	return Item{Name: name, Note: a.Note, Files: a.files, Common: a.Common}, nil
}

// Done is closed when the custodian keeps nothing for this host any more: after Leave and
// End, and when it has ended.
func (c *Custody) Done() <-chan struct{} { return c.done }

// Err says why, once Done is closed: [ErrGone] when the custodian has ended, nil after Leave
// and End.
func (c *Custody) Err() error {
	select {
	case <-c.left:
		return nil
	default:
	}
	select {
	case <-c.done:
		return ErrGone
	default:
		return nil
	}
}

// Leave leaves what is kept to the next host, as the end of this process would. The
// custody must not be used any more. Only the first call of Leave and End does something.
func (c *Custody) Leave(ctx context.Context) error { return c.part(ctx, opLeave) }

// End has the custodian close all that it keeps, and returns when it has ended: also
// when it had before, and then nothing is left of its folder either.
func (c *Custody) End(ctx context.Context) error { return c.part(ctx, opEnd) }

func (c *Custody) part(ctx context.Context, op string) error {
	var err error
	c.once.Do(func() {
		close(c.left)
		_, err = c.link.call(ctx, request{Op: op}, nil)
		c.link.close()
		<-c.done
		if gone := errors.Is(err, ErrGone); gone || op == opEnd {
			if e := process.Await(ctx, c.custodian); e != nil {
				err = fmt.Errorf("end the process that keeps sessions: %w", e)
			} else {
				err = os.RemoveAll(c.folder.path)
			}
		}
		c.release()
	})
	return err
}

// Bury removes what is left of a custody whose custodian has ended; see [Gone]. The
// error is [ErrUsed] when somebody has it.
func Bury(dir, id string) error {
	f, err := openFolder(dir, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.close()
	held, err := f.lock(0)
	if err == nil {
		defer func() { _ = held.Close() }()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r, err := f.record(); err == nil && !process.Ended(r.Custodian) {
		return ErrUsed
	} else if err != nil && !errors.Is(err, ErrGone) {
		return err
	}
	if err := os.RemoveAll(f.path); err != nil {
		return fmt.Errorf("remove what is left of a custody: %w", err)
	}
	return nil
}
