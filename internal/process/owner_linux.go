package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"syscall"
	"time"
)

//go:embed owner.py
var ownerScript string

const (
	// ownerEnd is how long the owner has to end what is below it, and ownerLeast what is
	// left of that at the end of a context.
	ownerEnd   = 12 * time.Second
	ownerLeast = 2 * time.Second
	// An owner that did not begin is tried again with the next child, and from then on after
	// a pause that is longer each time: until ownerPauseMost.
	ownerPause     = time.Second
	ownerPauseMost = time.Minute
	// mostUnfit is how many in a row may be killed before they can do anything, until it is
	// taken for the system that does not let them.
	mostUnfit = 5
)

// Close ends everything below the owner, and returns when it is gone: at once when
// nothing was started. The end of ctx leaves it 2 s. The error is a [*NotEndedError] with
// what could not be ended. No child gets this owner
// from now on. Close may be called again.
func (o *Owner) Close(ctx context.Context) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	o.over = true
	clear(o.shared)
	all := make([]*keeper, 0, len(o.all))
	for k := range o.all {
		all = append(all, k)
	}
	o.mu.Unlock()
	for _, k := range all { // all at once
		k.end()
	}
	var failed []error
	for _, k := range all {
		failed = append(failed, k.join(ctx))
	}
	o.mu.Lock()
	left := o.left
	o.left = nil
	o.mu.Unlock()
	c, cancel := context.WithTimeout(context.Background(), ownerLeast)
	defer cancel()
	for m := range left { // an heir has done that, unless it was killed
		failed = append(failed, EndMarked(c, m))
	}
	return errors.Join(failed...)
}

// Leave gives up what is below an owner that others hold ([Owner.Outlive]), as the end of
// this process would: it ends with the last of them. What nobody holds ends. Children of
// the owner are taken for ended from now on, and no child gets it any more. It is for a
// process that is about to end: what waits for those that were left is not joined.
func (o *Owner) Leave() {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.over = true
	clear(o.shared)
	all := make([]*keeper, 0, len(o.all))
	for k := range o.all {
		all = append(all, k)
	}
	o.mu.Unlock()
	for _, k := range all {
		_ = k.life.Close()
		_ = k.conn.Close()
	}
}

// start starts a child below the owner; false: it has to be started without.
func (o *Owner) start(opt Options) (*Process, bool, error) {
	if o == nil {
		return nil, false, nil
	}
	const attempts = 2 // somebody may end one just now
	for range attempts {
		k := o.keeper(opt)
		if k == nil {
			return nil, false, nil
		}
		p, err := k.spawn(opt)
		if !errors.Is(err, errNoKeeper) {
			o.mu.Lock()
			o.failed = 0
			o.mu.Unlock()
			return p, true, err
		}
		if k.unable.Load() { // this system does not let it: another would not be able to either
			o.mu.Lock()
			o.over = true
			o.mu.Unlock()
			return nil, false, nil
		}
	}
	o.mu.Lock()
	o.failed++
	o.after = time.Now().Add(min(time.Duration(o.failed-1)*ownerPause, ownerPauseMost))
	o.mu.Unlock()
	return nil, false, nil
}

// keeper returns the process that a child starts below, nil where there is none. Children
// that are confined have another, which is under the same rules: they hold for what a
// thread starts.
func (o *Owner) keeper(opt Options) *keeper {
	python := o.interpreter()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || python == "" || o.failed > 0 && time.Now().Before(o.after) {
		return nil
	}
	shares := opt.Confine == nil || opt.Confined != ""
	name := opt.Confined
	if opt.Confine == nil {
		name = ""
	}
	if k := o.shared[name]; shares && k != nil {
		return k
	}
	var words []string
	if !shares {
		words = []string{"once"}
	}
	k := o.beginLocked(python, opt.Confine, words)
	if k != nil && shares {
		o.shared[name] = k
	}
	return k
}

// beginLocked starts a keeper, nil where that fails: a host has children all the same.
// o.mu is held.
func (o *Owner) beginLocked(python string, confine func() error, words []string) *keeper {
	if o.all == nil {
		o.all, o.shared, o.mark = map[*keeper]struct{}{}, map[string]*keeper{}, newHighMark()
	}
	k, err := startKeeper(python, confine, o.forget, words)
	if err != nil {
		return nil
	}
	k.mark = o.mark
	if k.startWait = o.startWait; k.startWait == 0 {
		k.startWait = keeperStart
	}
	o.all[k] = struct{}{}
	if o.hold != nil && k.hand(o.hold) != nil {
		k.end()
		return nil
	}
	return k
}

// forget takes note of the end of a keeper: first it takes no children any more, then
// nothing is left of it.
func (o *Owner) forget(k *keeper, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, one := range o.shared {
		if one == k {
			delete(o.shared, name)
		}
	}
	if !over {
		return
	}
	delete(o.all, k)
	var how *ExitError
	killed := errors.As(k.guard.Err(), &how) && how.Signal != 0 // and so was the other
	if k.fit.Load() {
		o.unfit = 0
	} else {
		o.unfit++
	}
	if killed && o.unfit < mostUnfit {
		o.inheritLocked()
	}
}

// inheritLocked has an heir end, with the host, what is left of keepers that were killed.
// It has no children of its own. o.mu is held.
func (o *Owner) inheritLocked() {
	alive, err := marks()
	if err != nil { // what lives cannot be looked at: it may be any of them
		alive = maps.Clone(o.claims)
		alive[o.mark] = 1
	}
	words := []string{"heir"}
	for m := range alive {
		if m == o.mark || o.claims[m] > 0 {
			words = append(words, strconv.FormatUint(uint64(m), 10))
			if o.left == nil {
				o.left = map[Mark]bool{}
			}
			o.left[m] = true
		}
	}
	if len(words) > 1 && !o.over {
		o.beginLocked(o.python, nil, words)
	}
}

// request is what is asked of a keeper: words, and descriptors.
func request(words []string, files []*os.File) (head, body, rights []byte) {
	size := 0
	for _, w := range words {
		size += len(w) + 1
	}
	body = make([]byte, 0, size)
	for i, w := range words {
		if i > 0 {
			body = append(body, 0)
		}
		body = append(body, w...)
	}
	head = appendNumbers(nil, uint32(len(body)), uint32(len(files))) //nolint:gosec // a request is small
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = syscall.UnixRights(fds...)
	}
	return head, body, rights
}

// stepExec is the step of a start in which the program is executed.
const stepExec = "exec"

// stepBegin is that of one that did not get as far in time.
const stepBegin = "begin"

// refusal reads why a program was not started.
func refusal(path string, number int, step string) error {
	errno := syscall.Errno(number)
	if number == 0 {
		return fmt.Errorf("start %s: %s", path, step)
	}
	switch step {
	case stepExec:
		return fmt.Errorf("start %s: %w", path, &os.PathError{Op: "fork/exec", Path: path, Err: errno})
	case stepBegin:
		return fmt.Errorf("start %s: it has not begun to run in time: its folder or its program may be on a file system that does not answer: %w", path, errno)
	case "chdir":
		return fmt.Errorf("start %s: change to its directory: %w", path, errno)
	default:
		return fmt.Errorf("start %s: %s: %w", path, step, errno)
	}
}
