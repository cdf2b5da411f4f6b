package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
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
	return errors.Join(failed...)
}

// start starts a child below the owner; false: it has to be started without.
func (o *Owner) start(opt Options) (*Process, bool, error) {
	if o == nil || opt.User != nil { // it can signal no other user's
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
			return p, true, err
		}
		if !k.fit.Load() { // it never was able to: another would not be either
			o.mu.Lock()
			o.over = true
			o.mu.Unlock()
		}
	}
	return nil, false, nil
}

// keeper returns the process that a child starts below, nil where there is none. Children
// that are confined have another, which is under the same rules: they hold for what a
// thread starts.
func (o *Owner) keeper(opt Options) *keeper {
	python := o.interpreter()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over || python == "" {
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
	k, err := startKeeper(python, opt.Confine, o.forget, !shares)
	if err != nil {
		return nil // a host has children all the same
	}
	if o.all == nil {
		o.all, o.shared = map[*keeper]struct{}{}, map[string]*keeper{}
	}
	o.all[k] = struct{}{}
	if o.hold != nil && k.hand(o.hold) != nil {
		k.end()
		return nil
	}
	if shares {
		o.shared[name] = k
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
	if over {
		delete(o.all, k)
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

// refusal reads why a program was not started.
func refusal(path string, number int, step string) error {
	errno := syscall.Errno(number)
	if number == 0 {
		return fmt.Errorf("start %s: %s", path, step)
	}
	switch step {
	case stepExec:
		return fmt.Errorf("start %s: %w", path, &os.PathError{Op: "fork/exec", Path: path, Err: errno})
	case "chdir":
		return fmt.Errorf("start %s: change to its directory: %w", path, errno)
	default:
		return fmt.Errorf("start %s: %s: %w", path, step, errno)
	}
}
