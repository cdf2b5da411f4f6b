package sharedgateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
)

const (
	lockRetry = 20 * time.Millisecond
	beatEvery = 500 * time.Millisecond
)

// holder is what the holder of gateway.lock writes into it, for people.
type holder struct {
	Process process.Identity `json:"process"`
	Doing   string           `json:"doing"`
	Since   time.Time        `json:"since"`
	Beat    time.Time        `json:"beat"`
}

// LockedError says that the lock could not be taken in time.
type LockedError struct {
	// PID is the holder's, 0 when it is not known; Doing is what it does, and
	// Beat when it last said so.
	PID   int
	Doing string
	Beat  time.Time
	Err   error
}

// Error names the holder and the next step.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("wait for the lock of the shared gateway: %v", e.Err)
	}
	return fmt.Sprintf("wait for the lock of the shared gateway: process %d holds it (%s, last heartbeat %s): %v; if it is stuck, end it",
		e.PID, e.Doing, e.Beat.Format(time.TimeOnly), e.Err)
}

// Unwrap returns why the wait ended.
func (e *LockedError) Unwrap() error { return e.Err }

// lock takes gateway.lock and keeps its heartbeat until unlock is called, which
// joins the goroutine that beats.
func lock(ctx context.Context, dir, doing string) (unlock func(), err error) {
	path := filepath.Join(dir, lockFile)
	l := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))
	if ok, err := l.TryLockContext(ctx, lockRetry); err != nil || !ok {
		_ = l.Close()
		var h holder
		if data, readErr := file.Read(context.WithoutCancel(ctx), path, maxRecord); readErr == nil {
			_ = json.Unmarshal(data, &h) // nothing but news for people
		}
		return nil, &LockedError{PID: h.Process.PID, Doing: h.Doing, Beat: h.Beat, Err: context.Cause(ctx)}
	}
	self, _ := process.Identify(os.Getpid())
	h := holder{Process: self, Doing: doing, Since: time.Now()}
	beat := func() {
		h.Beat = time.Now()
		if data, err := json.Marshal(h); err == nil {
			_ = os.WriteFile(path, append(data, '\n'), 0o600) // for people: the lock is held either way
		}
	}
	beat()
	over := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		t := time.NewTicker(beatEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				beat()
			case <-over:
				return
			}
		}
	})
	return func() {
		close(over)
		beating.Wait()
		_ = os.Truncate(path, 0) // the lock is free now
		_ = l.Close()
	}, nil
}

// ownPath is the file that the gateway of a place holds for as long as it lives.
func ownPath(dir, place string) string { return filepath.Join(dir, place+".own") }

// held reports whether a lock is held. It takes it for an instant.
func held(path string) bool {
	l := flock.New(path, flock.SetFlag(os.O_RDWR|file.NonBlock))
	defer func() { _ = l.Close() }()
	ok, err := l.TryRLock()
	return err == nil && !ok
}
