package users

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// The range: above what distributions and systemd give out, below what some programs
// take for negative.
const (
	first  = 1_900_000_000
	size   = 1 << 16 // numbers of a block, and their groups
	blocks = 1 << 10
)

// purgeWait bounds the end of what a user has left.
const purgeWait = 10 * time.Second

// shm is where shared memory has names.
const shm = "/dev/shm"

// Options say where the numbers are held and what becomes of what they leave.
type Options struct {
	// Registry is the folder of the locks, the same for all hosts of a machine. It is
	// made if need be. "": /run/coppice/users.
	Registry string
	// Killer is a program, absolute, and its arguments, that sends SIGKILL to all
	// that it may, as kill(-1) does. It is run as a user that has left something.
	Killer []string
}

// Block is a part of the range that this host holds.
type Block struct {
	o     Options
	lock  *flock.Flock
	first int

	mu     sync.Mutex
	next   int          // offset of the next number
	held   map[int]bool // offsets; of those that are spoilt too
	closed bool
}

// Open takes a free block and ends what the last host has left there.
func Open(ctx context.Context, o Options) (*Block, error) {
	if o.Registry == "" {
		o.Registry = "/run/coppice/users"
	}
	if err := os.MkdirAll(o.Registry, 0o700); err != nil {
		return nil, fmt.Errorf("hold users for sessions: %w", err)
	}
	for n := range blocks {
		lock := flock.New(filepath.Join(o.Registry, strconv.Itoa(n)), flock.SetPermissions(0o600))
		got, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("hold users for sessions: %w", err)
		}
		if !got {
			continue
		}
		b := &Block{o: o, lock: lock, first: first + n*size, held: map[int]bool{}}
		b.next = b.turn()
		if err := b.sweep(ctx); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		return b, nil
	}
	return nil, fmt.Errorf("hold users for sessions: all %d blocks are held by other hosts", blocks)
}

// Group is the group that all processes of the block's users are in, besides their own.
func (b *Block) Group() int { return b.first }

// turn reads where the last host has got to.
func (b *Block) turn() int {
	text, err := os.ReadFile(b.lock.Path())
	if err != nil {
		return 1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 1 || n >= size {
		return 1
	}
	return n
}

// sweep ends what users of the block have left, of a host that was killed.
func (b *Block) sweep(ctx context.Context) error {
	left, err := living(func(uid int) bool { return uid > b.first && uid < b.first+size })
	if err != nil {
		return err
	}
	for uid := range left {
		if err := b.purge(ctx, uid); err != nil {
			b.held[uid-b.first] = true // spoilt
		}
	}
	return forget(func(uid int) bool { return uid > b.first && uid < b.first+size })
}

// Close gives the block back. What was not released is ended by the next host that takes
// it.
func (b *Block) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	err := os.WriteFile(b.lock.Path(), []byte(strconv.Itoa(b.next)), 0o600)
	if err := errors.Join(err, b.lock.Close()); err != nil {
		return fmt.Errorf("give users back: %w", err)
	}
	return nil
}

// Lease holds a number, and a folder of its own in dir, for which dir has to let others
// pass (mode 0711).
func (b *Block) Lease(dir string) (*Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("hold a user: the block was given back")
	}
	for range size {
		at := b.next
		if b.next++; b.next == size {
			b.next = 1 // the first is that of the group
		}
		if b.held[at] {
			continue
		}
		l := &Lease{block: b, uid: b.first + at, folder: filepath.Join(dir, strconv.Itoa(b.first+at)), holders: 1}
		err := os.Mkdir(l.folder, 0o700)
		if err == nil {
			err = os.Lchown(l.folder, l.uid, l.uid)
		}
		if err != nil {
			return nil, fmt.Errorf("make the folder of a user: %w", err)
		}
		b.held[at] = true
		return l, nil
	}
	return nil, errors.New("hold a user: all of the block are held")
}

// Lease is a number that is held.
type Lease struct {
	block  *Block
	uid    int
	folder string

	mu      sync.Mutex
	holders int
}

// UID is the number, of the user and of its group.
func (l *Lease) UID() int { return l.uid }

// Folder is the user's own: no other can look into it.
func (l *Lease) Folder() string { return l.folder }

// Share makes one more holder, who owes a Release: a copy of a process has its user.
func (l *Lease) Share() *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holders++
	return l
}

// Release gives the number up. The last one ends what its user still runs, removes its
// folder and its shared memory, and gives the number back.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	l.holders--
	last := l.holders == 0
	l.mu.Unlock()
	if !last {
		return nil
	}
	err := l.block.purge(ctx, l.uid)
	if err == nil {
		err = errors.Join(os.RemoveAll(l.folder), forget(func(uid int) bool { return uid == l.uid }))
	}
	if err != nil {
		return fmt.Errorf("take back user %d: %w", l.uid, err)
	}
	l.block.mu.Lock()
	delete(l.block.held, l.uid-l.block.first)
	l.block.mu.Unlock()
	return nil
}

// purge ends all processes of a user.
func (b *Block) purge(ctx context.Context, uid int) error {
	ctx, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	for {
		if !runsAny(uid) {
			return nil
		}
		left, err := living(func(u int) bool { return u == uid })
		if err != nil || len(left) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d processes of user %d did not end", left[uid], uid)
		}
		// As that user: the system then reaches all of its processes in one step, which
		// none of them outruns by starting others.
		cmd := exec.CommandContext(ctx, b.o.Killer[0], b.o.Killer[1:]...)
		cmd.Env, cmd.Dir = []string{}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Setsid: true, Pdeathsig: syscall.SIGKILL} //nolint:gosec // of the range
		if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil && len(out) > 0 {
			return fmt.Errorf("end the processes of user %d: %w: %s", uid, err, out)
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond): // they are dead, and about to be reaped
		}
	}
}

// runsAny reports whether a user may have processes, zombies among them. It asks the kernel,
// which knows without a look at all of them.
func runsAny(uid int) bool {
	_, err := unix.Getpriority(unix.PRIO_USER, uid)
	return !errors.Is(err, unix.ESRCH)
}

// living counts the processes of users, by their numbers. A zombie is none.
func living(of func(uid int) bool) (map[int]int, error) {
	names, err := pids()
	if err != nil {
		return nil, err
	}
	found := map[int]int{}
	for _, pid := range names {
		status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
		if err != nil {
			continue // it has ended
		}
		uid, zombie := -1, false
		for line := range strings.Lines(string(status)) {
			name, rest, _ := strings.Cut(line, ":")
			fields := strings.Fields(rest)
			switch {
			case name == "State" && len(fields) > 0:
				zombie = fields[0] == "Z" || fields[0] == "X" // its first thread is, at least
			case name == "Threads" && len(fields) > 0:
				zombie = zombie && fields[0] == "1"
			case name == "Uid" && len(fields) > 0:
				uid, _ = strconv.Atoi(fields[0])
			}
		}
		if !zombie && uid >= 0 && of(uid) {
			found[uid]++
		}
	}
	return found, nil
}

func pids() ([]string, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	defer func() { _ = proc.Close() }() // it was only read
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	numbers := names[:0]
	for _, n := range names {
		if n[0] >= '1' && n[0] <= '9' {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// forget removes the shared memory of users.
func forget(of func(uid int) bool) error {
	root, err := os.OpenRoot(shm)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at shared memory: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	dir, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("look at shared memory: %w", err)
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("look at shared memory: %w", err)
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil {
			continue // it is gone
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && of(int(st.Uid)) {
			if err := root.RemoveAll(name); err != nil {
				return fmt.Errorf("remove shared memory: %w", err)
			}
		}
	}
	return nil
}
