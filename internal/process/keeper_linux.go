package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errNoKeeper says that a keeper has ended, or cannot do what it is for.
var errNoKeeper = errors.New("the owner of processes has ended")

const (
	// keeperUrge is after how long a keeper that is late is continued, since somebody may
	// have stopped it with a signal, and keeperUrges how often, before it is given up.
	// The time in which it had no processor does not count.
	keeperUrge  = 500 * time.Millisecond
	keeperUrges = 40
	// keeperStart is how long a child has to become its program, without the time in which
	// the keeper had no processor.
	keeperStart = 20 * time.Second
	// keeperWrite bounds a request to one that does not read.
	keeperWrite = time.Minute
	// keeperRoom is how much one may print.
	keeperRoom = 4 << 10
)

// keeper are the processes behind an [Owner]: one that works, which has the children,
// and the one that this one has forked, which guards: it has what is left when the other
// is killed.
type keeper struct {
	guard  *Process
	life   *os.File // whose end is that of the host
	conn   *net.UnixConn
	dead   chan struct{} // closed when the one that works says nothing more
	over   chan struct{} // closed when the guard has ended, too
	told   func(k *keeper, over bool)
	fit    atomic.Bool // it can do what it is for
	unable atomic.Bool // it says that it cannot, on this system
	held   atomic.Bool // its life may hang on others, too

	mark      Mark          // of children that are given none
	startWait time.Duration // how long a child has to become its program

	write sync.Mutex // held while a request is written

	mu     sync.Mutex
	id     Identity       // guarded by mu: of the one that works; zero while it is not known
	worker *os.Process    // guarded by mu: the same; nil while it is not known
	quiet  bool           // guarded by mu: it says nothing more
	last   int            // guarded by mu: the number of the last order
	orders map[int]*order // guarded by mu: those that have no answer
	kids   map[int]*kid   // guarded by mu: by pid, until their end was told
}

// order is a request for a child.
type order struct {
	begun chan struct{} // closed when there is a process for it, and with done
	done  chan struct{} // closed with the answer, or with the end of the keeper
	kid   *kid          // nil: it failed
	// errno and step say why, both written before done is closed; neither does when the
	// keeper has ended.
	errno int
	step  string
}

// begin says that there is a process for it. The keeper's lock is held.
func (o *order) begin() {
	select {
	case <-o.begun:
	default:
		close(o.begun)
	}
}

// close tells its answer. The keeper's lock is held.
func (o *order) close() {
	o.begin()
	close(o.done)
}

// startKeeper starts one and does not wait until it is ready. The words say what it is:
// "once", one that ends with the last of what is below it, or "heir", followed by marks,
// one that ends what has these, too.
func startKeeper(python string, confine func() error, told func(k *keeper, over bool), words []string) (*keeper, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "owner"), os.NewFile(uintptr(fds[1]), "owner")
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	conn, err := net.FileConn(ours) // a duplicate
	if err != nil {
		return nil, fmt.Errorf("use a socket pair: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	args := append([]string{"-I", "-S", "-c", ownerScript, "coppice-owner"}, words...)
	k := &keeper{conn: conn.(*net.UnixConn), life: w, dead: make(chan struct{}), over: make(chan struct{}), told: told, orders: map[int]*order{}, kids: map[int]*kid{}}
	// Of a session of its own and with an empty environment: it outlives this process
	// by the moment that the sweep takes, and what it starts may read what it has.
	k.guard, err = Start(Options{Path: python, Args: args, Dir: "/", Stdin: theirs, ExtraFiles: []*os.File{r}, OutliveHost: true, Confine: confine, Stderr: NewRing(RingOptions{Size: keeperRoom})})
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		_ = conn.Close()
		return nil, err
	}
	go k.read() // ends with the keeper's end of the connection; join waits for it
	return k, nil
}

// read takes what the keeper says, until it says nothing more.
func (k *keeper) read() {
	lines := bufio.NewScanner(k.conn)
	for lines.Scan() {
		k.line(strings.Fields(lines.Text()))
	}
	k.mu.Lock()
	k.quiet = true
	for _, o := range k.orders {
		o.close()
	}
	for _, child := range k.kids { // which the system has killed with it
		child.code, child.signal, child.lost = -1, int(unix.SIGKILL), true
		close(child.done)
	}
	clear(k.orders)
	clear(k.kids)
	k.mu.Unlock()
	k.told(k, false)
	close(k.dead)
	<-k.guard.Done() // which stays for as long as it has somebody
	k.told(k, true)
	k.mu.Lock()
	if k.worker != nil {
		_ = k.worker.Release()
		k.worker = nil
	}
	k.mu.Unlock()
	_ = k.life.Close()
	close(k.over)
}

func (k *keeper) line(words []string) {
	number := func(i int) int {
		if i >= len(words) {
			return 0
		}
		n, _ := strconv.Atoi(words[i])
		return n
	}
	if len(words) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch words[0] {
	case "ready":
		k.fit.Store(true)
		// A handle of the process: whether it is still the one that spoke, its end of the
		// connection says.
		k.worker, _ = os.FindProcess(number(1))
		k.id, _ = Identify(number(1))
	case "cannot":
		k.unable.Store(true)
	case "begun":
		if o := k.orders[number(1)]; o != nil {
			o.begin()
		}
	case "started", "failed":
		o := k.orders[number(1)]
		if o == nil {
			return
		}
		delete(k.orders, number(1))
		if words[0] == "failed" {
			o.errno, o.step = number(2), strings.Join(words[min(3, len(words)):], " ")
		} else {
			o.kid = &kid{keeper: k, pid: number(2), done: make(chan struct{})}
			k.kids[o.kid.pid] = o.kid
		}
		o.close()
	case "ended":
		if child := k.kids[number(1)]; child != nil {
			delete(k.kids, child.pid)
			child.code, child.signal = number(2), number(3)
			close(child.done)
		}
	}
}

// send writes a request.
func (k *keeper) send(words []string, files []*os.File) error {
	head, body, rights := request(words, files)
	k.write.Lock()
	defer k.write.Unlock()
	k.urge()
	if err := k.conn.SetWriteDeadline(time.Now().Add(keeperWrite)); err != nil {
		return err
	}
	_, _, err := k.conn.WriteMsgUnix(head, rights, nil)
	if err == nil {
		_, err = k.conn.Write(body)
	}
	if err != nil {
		k.kill() // what was written in part would spoil all that follows
	}
	return err
}

// urge continues a keeper that was stopped by a signal: what it has to do cannot wait.
func (k *keeper) urge() {
	k.signal(unix.SIGCONT)
	_ = k.guard.Signal(unix.SIGCONT)
}

func (k *keeper) signal(sig os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.worker != nil {
		_ = k.worker.Signal(sig) // that it has ended is seen elsewhere
	}
}

// identity names the process that works, or that becomes it.
func (k *keeper) identity() Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id.PID != 0 {
		return k.id
	}
	return k.guard.id
}

// await waits for what the keeper is to say, and ends one that says nothing: then done is
// closed as well.
func (k *keeper) await(done <-chan struct{}) {
	for range keeperUrges {
		if endsWithin(context.Background(), keeperUrge, done, k.identity()) {
			return
		}
		k.urge()
	}
	k.kill()
	<-done
}

// kill ends the process that works, and with it the children that it has started. The
// guard stays for what is left of them.
func (k *keeper) kill() {
	k.signal(os.Kill)
	if !k.fit.Load() {
		_ = k.guard.Stop(context.Background(), StopOptions{Grace: -1}) // there is no other yet
	}
	_ = k.conn.Close()
}

// end has a keeper end everything below it, and then itself.
func (k *keeper) end() {
	k.urge()
	if k.held.Load() { // others have what its life hangs on
		_ = k.send([]string{"end"}, nil)
	}
	_ = k.life.Close()
}

// hand has others hold what the keeper takes for the life of its host.
func (k *keeper) hand(hold func(files []*os.File) error) error {
	conn, err := k.conn.File() // a duplicate
	if err != nil {
		return fmt.Errorf("keep an owner of processes: %w", err)
	}
	defer func() { _ = conn.Close() }()
	k.held.Store(true)
	return hold([]*os.File{k.life, conn})
}

// join waits for its end.
func (k *keeper) join(ctx context.Context) error {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerEnd)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(ownerLeast, cancel) })
	defer stop()
	stuck := &NotEndedError{}
	select {
	case <-k.over:
	case <-c.Done():
		below, err := Descendants(k.guard.id)
		if err != nil { // somebody has ended it
			below, _ = Descendants(k.identity())
		}
		for _, b := range below {
			if b != k.identity() {
				stuck.PIDs = append(stuck.PIDs, b.PID)
			}
		}
		k.kill()
		_ = k.guard.Stop(context.Background(), StopOptions{Grace: -1}) // what survives that is stuck in the system
	}
	_ = k.conn.Close()
	<-k.over
	if len(stuck.PIDs) > 0 {
		return stuck
	}
	return nil
}
