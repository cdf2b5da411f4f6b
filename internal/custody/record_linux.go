package custody

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// The files of a custody.
const (
	recordFile = "record.json"
	lockFile   = "host.lock"
	namesFile  = "names"
	socketFile = "s"
)

// maxRecord bounds record.json, maxNames names, in bytes.
const (
	maxRecord = 64 << 10
	maxNames  = 16 << 20
)

// record is what record.json says.
type record struct {
	Custodian process.Identity `json:"custodian"`
	Token     string           `json:"token"`
}

// folder is the open folder of one custody: what is reached through it cannot be
// exchanged for another by who renames folders.
type folder struct {
	path string
	dir  *os.File
}

// openFolder opens one that is this user's alone.
func openFolder(dir, id string) (*folder, error) {
	if id == "" || id != filepath.Base(id) || !filepath.IsLocal(id) {
		return nil, refusedf("%q names no folder", id)
	}
	path := filepath.Join(dir, id)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, refusedf("%s is not a folder", path)
	case err != nil:
		return nil, fmt.Errorf("open what is kept: %w", &os.PathError{Op: "open", Path: path, Err: err})
	}
	f := &folder{path: path, dir: os.NewFile(uintptr(fd), path)}
	if err := mine(f.dir); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *folder) close() { _ = f.dir.Close() }

// open opens a file of the custody that is this user's alone.
func (f *folder) open(name string, flag int) (*os.File, error) {
	path := filepath.Join(f.path, name)
	fd, err := unix.Openat(int(f.dir.Fd()), name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, refusedf("%s is a symbolic link", path)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	opened := os.NewFile(uintptr(fd), path)
	if err := mine(opened); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// mine returns a *RefusedError unless an open file or folder is this user's, and closed to
// others.
func mine(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at what is kept: %w", err)
	}
	return belongs(f.Name(), info, os.Geteuid())
}

// belongs does so for what is known of a file.
func belongs(path string, info fs.FileInfo, uid int) error {
	const others = 0o077
	switch owner := info.Sys().(*syscall.Stat_t).Uid; {
	case int(owner) != uid:
		return refusedf("%s belongs to user %d", path, owner)
	case info.Mode().Perm()&others != 0:
		return refusedf("%s is open to other users (its mode is %v)", path, info.Mode().Perm())
	case !info.Mode().IsRegular() && !info.IsDir():
		return refusedf("%s is not a regular file", path)
	}
	return nil
}

func (f *folder) read(name string, most int64) ([]byte, error) {
	opened, err := f.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	return file.ReadAll(context.Background(), opened, most)
}

// record reads record.json. The error is [ErrGone] when there is none.
func (f *folder) record() (record, error) {
	var r record
	data, err := f.read(recordFile, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrGone
	}
	if err != nil {
		return r, err
	}
	if json.Unmarshal(data, &r) != nil || r.Token == "" || r.Custodian.PID <= 1 || r.Custodian.Start == "" {
		return r, refusedf("%s does not say who keeps it", filepath.Join(f.path, recordFile))
	}
	return r, nil
}

// names reads what is kept. It is news for people: what cannot be read is left out.
func (f *folder) names() []string {
	data, err := f.read(namesFile, maxNames)
	if err != nil {
		return nil
	}
	kept := map[string]struct{}{}
	for line := range bytes.Lines(data) {
		var said [2]string
		if json.Unmarshal(line, &said) != nil {
			continue // the custodian was killed while it wrote
		}
		if said[0] == "+" {
			kept[said[1]] = struct{}{}
		} else {
			delete(kept, said[1])
		}
	}
	names := make([]string, 0, len(kept))
	for name := range kept {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lock takes host.lock, [ErrUsed] when another process has it.
func (f *folder) lock(flag int) (*os.File, error) {
	opened, err := f.open(lockFile, unix.O_RDWR|flag)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(opened.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return opened, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			err = ErrUsed
		default:
			err = fmt.Errorf("lock %s: %w", opened.Name(), err)
		}
		_ = opened.Close()
		return nil, err
	}
}

// signIn writes down which process has the lock, as the host.
func signIn(lock *os.File) error {
	me, err := process.Identify(os.Getpid())
	if err != nil {
		return fmt.Errorf("write down who has what is kept: %w", err)
	}
	data, err := json.Marshal(me)
	if err == nil {
		err = lock.Truncate(0)
	}
	if err == nil {
		_, err = lock.WriteAt(data, 0)
	}
	if err != nil {
		return fmt.Errorf("write down who has what is kept: %w", err)
	}
	return nil
}

// host reads who has signed in last. It is false when nobody has, or has left since.
func (f *folder) host() (process.Identity, bool) {
	var id process.Identity
	data, err := f.read(lockFile, maxRecord)
	return id, err == nil && json.Unmarshal(data, &id) == nil && id.PID > 0
}

// What frees the lock of a host that has ended, and of one who only looks, takes no time
// where there is a processor for it.
var (
	letGo  = opportunity.Starting(10*time.Second, 0)
	looked = opportunity.Starting(time.Second, 0)
)

// await is lock for who may find it held by nobody who is the host: by one who only looks,
// or by a child of a host that was killed, which has all that this had until it has become
// the program that it is to be. The error is [ErrUsed] at once when the host lives, and the
// cause of ctx when that ends first.
func (f *folder) await(ctx context.Context) (*os.File, error) {
	held, err := f.lock(0)
	if !errors.Is(err, ErrUsed) {
		return held, err
	}
	budget := looked
	switch id, known := f.host(); {
	case known && process.Alive(id):
		return nil, ErrUsed
	case known && process.Ended(id):
		budget = letGo
	}
	bound, done := opportunity.Within(ctx, budget, opportunity.Unknown{})
	defer done()
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-bound.Done():
			if ctx.Err() != nil {
				return nil, fmt.Errorf("wait for the lock of what is kept: %w", context.Cause(ctx))
			}
			return nil, ErrUsed
		}
		if held, err = f.lock(0); !errors.Is(err, ErrUsed) {
			return held, err
		}
		if id, known := f.host(); known && process.Alive(id) {
			return nil, ErrUsed // another was earlier
		}
	}
}

// unfinished is the name of a folder while this host begins: it says whose it is.
func unfinished(id string) string { return "." + temp.Maker() + "-" + id }

// removeUnfinished removes the folders of hosts that were killed while they began. One that
// does not say whose it is has to be old: to begin takes no time.
func removeUnfinished(dir string) {
	const young = time.Minute
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		maker, hidden := strings.CutPrefix(e.Name(), ".")
		if !hidden {
			continue
		}
		ended := temp.Ended(maker[:max(0, strings.LastIndex(maker, "-"))])
		if info, err := e.Info(); err == nil && (ended || time.Since(info.ModTime()) > young) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // the next host tries again
		}
	}
}

// dial connects to the custodian, and makes sure that it is the one that is recorded.
func (f *folder) dial(ctx context.Context, want process.Identity) (*net.UnixConn, error) {
	// By way of the open folder: the path may be longer than that of a socket may be.
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", f.dir.Fd(), socketFile))
	if err != nil {
		return nil, fmt.Errorf("reach the process that keeps sessions: %w", err)
	}
	conn := c.(*net.UnixConn)
	if err := isCustodian(conn, want); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// isCustodian returns a *RefusedError when another process is at the other end.
func isCustodian(conn *net.UnixConn, want process.Identity) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("look who keeps sessions: %w", err)
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		err = e
	}
	switch {
	case err != nil:
		return fmt.Errorf("look who keeps sessions: %w", err)
	case int(peer.Uid) != os.Geteuid():
		return refusedf("who answers belongs to user %d", peer.Uid)
	case int(peer.Pid) != want.PID:
		return refusedf("process %d answers, and process %d is recorded", peer.Pid, want.PID)
	case isMissing(want.PID):
		return ErrGone // it has ended since
	case process.Ended(want):
		return refusedf("process %d is not the one that is recorded: it began at another time", want.PID)
	case !process.Alive(want):
		return fmt.Errorf("look who keeps sessions: process %d cannot be looked at", want.PID)
	}
	return nil
}

// isMissing says that there is no process of a number.
func isMissing(pid int) bool {
	_, err := process.Identify(pid)
	return errors.Is(err, process.ErrNoProcess)
}

// Scan looks which custodies there are in a folder, and asks no custodian. It is empty
// when there is no such folder. It waits for the lock of a host that has ended, which a
// child of it can have for an instant longer.
func Scan(ctx context.Context, dir string) ([]Standing, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for what is kept: %w", err)
	}
	var found []Standing
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			found = append(found, stand(ctx, dir, e.Name()))
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("look for what is kept: %w", context.Cause(ctx))
	}
	return found, nil
}

func stand(ctx context.Context, dir, id string) Standing {
	s := Standing{ID: id, State: Waiting}
	f, err := openFolder(dir, id)
	if err != nil {
		s.State, s.Err = Refused, err
		return s
	}
	defer f.close()
	held, err := f.await(ctx)
	switch {
	case errors.Is(err, ErrUsed):
		s.State, s.Names = Used, f.names()
		return s
	case err == nil:
		_ = held.Close()
	case !errors.Is(err, fs.ErrNotExist):
		s.State, s.Err = Refused, err
		return s
	}
	r, err := f.record()
	switch {
	case errors.Is(err, ErrGone), err == nil && process.Ended(r.Custodian):
		s.State = Gone
	case err != nil:
		s.State, s.Err = Refused, err
		return s
	}
	s.Names = f.names()
	return s
}
