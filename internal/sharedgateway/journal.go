package sharedgateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// Entry is one journalled session: its variables are in Kernel.
type Entry struct {
	Key     messages.SessionKey `json:"key"`
	Kernel  string              `json:"kernel"`
	Gateway process.Identity    `json:"gateway"`
	// Fingerprint and Shard say where Gateway is. "": in the fingerprint of whoever
	// asks.
	Fingerprint string `json:"fingerprint,omitempty"`
	Shard       int    `json:"shard"`
	// Process is the kernel's own.
	Process process.Identity `json:"process"`
	Last    time.Time        `json:"last_activity"`
	// Keep is for how many seconds it lives without a host. 0: as long as its gateway says
	// of sessions that are not used ([Options].Keep).
	Keep float64 `json:"keep,omitempty"`
	// News is how the session began. nil: a result has told it.
	News *News `json:"news,omitempty"`
	// Seal is the key of the seal of the session's log, beside the journal ([Claim.Log]), which
	// says what the session's calls have come to. nil: there is none. Name is that of the hosts that
	// take such calls over, and Python the version of the kernel's.
	Seal   []byte `json:"seal,omitempty"`
	Name   string `json:"name,omitempty"`
	Python string `json:"python,omitempty"`
}

// News is how a session began, of which no result has told.
type News struct {
	// Restored is what it was restored with; nil: it began with nothing, for Reason.
	Restored *messages.Restored `json:"restored,omitempty"`
	Reason   string             `json:"reason,omitempty"`
}

// Claim is a host's hold on a journalled session. The system gives it up when
// the host ends, and the journal stays.
type Claim struct {
	key  messages.SessionKey
	path string
	lock *flock.Flock
}

// Take claims a session. It waits while another process has it.
func Take(ctx context.Context, dir string, key messages.SessionKey) (*Claim, error) {
	if !Supported {
		return nil, ErrUnsupported
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	c := claimOf(dir, key)
	if ok, err := c.lock.TryLockContext(ctx, lockRetry); err != nil || !ok {
		_ = c.lock.Close()
		return nil, fmt.Errorf("another process uses the session %q: %w", key.Session, errors.Join(context.Cause(ctx), err))
	}
	return c, nil
}

// TakeLeft claims a session that is in the journal and that no process has. It does not wait.
func TakeLeft(dir string, key messages.SessionKey) (*Claim, bool) {
	if !Supported {
		return nil, false
	}
	c := claimOf(dir, key)
	if _, there := c.Entry(); !there {
		return nil, false // nearly always: nothing is opened for it
	}
	if ok, err := c.lock.TryLock(); err != nil || !ok {
		_ = c.lock.Close()
		return nil, false
	}
	if _, there := c.Entry(); !there { // who had it has ended it meanwhile
		c.Release()
		return nil, false
	}
	return c, true
}

// claimOf is a claim that is not held yet.
func claimOf(dir string, key messages.SessionKey) *Claim {
	sum := sha256.Sum256([]byte(key.ID()))
	base := filepath.Join(dir, sessionsDir, hex.EncodeToString(sum[:16]))
	return &Claim{key: key, path: base + journalled, lock: flock.New(base+".lock", flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|file.NonBlock))}
}

// journalled is how the name of an entry ends, and logged that of the log beside it.
const (
	journalled = ".json"
	logged     = ".log"
)

// logOf is the log beside an entry.
func logOf(path string) string { return strings.TrimSuffix(path, journalled) + logged }

// Left claims the sessions that have a log, are of hosts with a name, and that no process has, in
// the order of their files.
func Left(dir, name string) []*Claim {
	var all []*Claim
	if !Supported {
		return nil
	}
	found := entries(dir)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if !found[path].leaves(name) {
			continue
		}
		c := claimOf(dir, found[path].Key)
		if ok, err := c.lock.TryLock(); err != nil || !ok || c.path != path {
			_ = c.lock.Close() // it is another host's, or not where its key says
			continue
		}
		if e, there := c.Entry(); !there || !e.leaves(name) { // another host had it meanwhile
			c.Release()
			continue
		}
		all = append(all, c)
	}
	return all
}

func (e Entry) leaves(name string) bool { return len(e.Seal) > 0 && e.Name == name }

// Key is that of the session.
func (c *Claim) Key() messages.SessionKey { return c.key }

// Log is where the log of the session's calls is, for package estate.
func (c *Claim) Log() (dir, name string) { return filepath.Split(logOf(c.path)) }

// DropLog removes the log.
func (c *Claim) DropLog() {
	_ = os.Remove(logOf(c.path)) // without its seal, which the next entry does not name, it is of no use
}

// Entry returns what is journalled, false when that is nothing.
func (c *Claim) Entry() (Entry, bool) {
	e, err := readEntry(c.path)
	return e, err == nil && e.Kernel != "" && e.Key == c.key
}

// Write journals the session.
func (c *Claim) Write(e Entry) error {
	e.Key, e.Last = c.key, time.Now().UTC()
	return writeJSON(c.path, e)
}

// Touch notes that the session was used just now.
func (c *Claim) Touch() {
	now := time.Now()
	_ = os.Chtimes(c.path, now, now) // it only ends sooner
}

// Forget removes the session from the journal, with its log.
func (c *Claim) Forget() error {
	c.DropLog()
	if err := os.Remove(c.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget a session: %w", err)
	}
	return nil
}

// Release lets the next process take the session. It may be called again.
func (c *Claim) Release() { _ = c.lock.Close() }

func readEntry(path string) (Entry, error) {
	var e Entry
	data, err := file.Read(context.Background(), path, maxRecord)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(data, &e)
}

// entries returns the journal by file.
func entries(dir string) map[string]Entry {
	found := map[string]Entry{}
	paths, _ := filepath.Glob(filepath.Join(dir, sessionsDir, "*"+journalled))
	for _, p := range paths {
		if e, err := readEntry(p); err == nil {
			found[p] = e
		}
	}
	return found
}
