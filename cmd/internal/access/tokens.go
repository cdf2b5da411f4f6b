package access

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// lookEvery is how often the file is looked at when no one asks.
const lookEvery = 250 * time.Millisecond

// Tokens are those of a file, as they are now. Make them with Watch, and Close them. Any
// goroutine may use them.
type Tokens struct {
	file   File
	logger *slog.Logger
	end    context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	held []*held     // the tokens that open something; guarded by mu
	seen fs.FileInfo // of the file that was read last; nil: none could be; guarded by mu
	why  string      // why none could be read; guarded by mu
}

// held is a token that opens something.
type held struct {
	Token

	over chan struct{} // closed when it opens nothing any more
}

// Watch reads a file of tokens, and again whenever it changes. A file that cannot be read
// any more, or that others can, opens nothing until it is mended. The error is that of
// File.Load.
func Watch(ctx context.Context, f File, logger *slog.Logger) (*Tokens, error) {
	list, info, err := f.load(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tokens{file: f, logger: logger}
	t.takeLocked(list, time.Now())
	t.seen = info
	life, end := context.WithCancel(context.Background())
	t.end = end
	t.done.Go(func() { // ends with Close, which joins it
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.mu.Lock()
				t.lookLocked()
				t.mu.Unlock()
			case <-life.Done():
				return
			}
		}
	})
	return t, nil
}

// Close ends the watch. What was let in stays.
func (t *Tokens) Close() {
	t.end()
	t.done.Wait()
}

// lookLocked reads the file if it has changed, and drops what has expired. t.mu is held.
func (t *Tokens) lookLocked() {
	now := time.Now()
	info, err := os.Stat(t.file.Path)
	if err == nil && t.seen != nil && same(info, t.seen) {
		t.dropLocked(now)
		return
	}
	list, read, err := t.file.load(context.Background())
	if err != nil {
		t.seen = nil
		t.takeLocked(nil, now)
		if why := err.Error(); why != t.why {
			t.why = why
			t.logger.Error("no token opens the server until its file is mended", "err", err)
		}
		return
	}
	t.seen, t.why = read, ""
	t.takeLocked(list, now)
	t.logger.Info("the tokens were read again", "open", len(t.held))
}

// same reports whether a file is as it was.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// takeLocked takes the tokens of a file in place of those before. t.mu is held.
func (t *Tokens) takeLocked(list []Token, now time.Time) {
	before := make(map[Token]*held, len(t.held))
	for _, h := range t.held {
		before[h.Token] = h
	}
	t.held = nil
	for _, one := range list {
		if !one.Opens(now) {
			continue
		}
		h := before[one]
		if h == nil {
			h = &held{one, make(chan struct{})}
		}
		delete(before, one)
		t.held = append(t.held, h)
	}
	for _, h := range before {
		close(h.over)
	}
}

// dropLocked drops what has expired. t.mu is held.
func (t *Tokens) dropLocked(now time.Time) {
	t.held = slices.DeleteFunc(t.held, func(h *held) bool {
		if h.Opens(now) {
			return false
		}
		close(h.over)
		return true
	})
}

// find looks for a token.
func (t *Tokens) find(is func(Token) bool) (httpserver.Pass, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	var found *held
	for _, h := range t.held { // all of them, whichever it is
		if is(h.Token) {
			found = h
		}
	}
	if found == nil {
		return httpserver.Pass{}, false
	}
	return httpserver.Pass{ID: found.ID, Tenant: found.Tenant, Scope: found.Scope, Over: found.over}, true
}

// Opens looks for a token, in a time that tells nothing of those that there are.
func (t *Tokens) Opens(token string) (httpserver.Pass, bool) {
	hash := sha256.Sum256([]byte(token))
	return t.find(func(one Token) bool { return one.is(hash) })
}

// Vouch is Opens by the ID.
func (t *Tokens) Vouch(id string) (httpserver.Pass, bool) {
	return t.find(func(one Token) bool { return one.ID == id })
}

// Issuers are the IDs of the tokens that open something.
func (t *Tokens) Issuers() []string { return t.issuers(func(Token) bool { return true }) }

func (t *Tokens) issuers(which func(Token) bool) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]string, 0, len(t.held))
	for _, h := range t.held {
		if which(h.Token) {
			list = append(list, h.ID)
		}
	}
	return list
}

// Tenants are the tenants that have a token which opens something, in the order of their
// names.
func (t *Tokens) Tenants() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked()
	var list []string
	for _, h := range t.held {
		list = append(list, h.Tenant)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// of is what opens the part of one tenant: its own tokens, and those of admins.
type of struct {
	tokens *Tokens
	tenant string
}

// Opens is that of an httpserver.Entry.
func (o of) Opens(token string) (httpserver.Pass, bool) { return o.mine(o.tokens.Opens(token)) }

// Vouch is that of an httpserver.Entry.
func (o of) Vouch(id string) (httpserver.Pass, bool) { return o.mine(o.tokens.Vouch(id)) }

// Issuers is that of an httpserver.Entry.
func (o of) Issuers() []string {
	return o.tokens.issuers(func(t Token) bool { return t.Tenant == o.tenant || t.Scope == httpserver.Admin })
}

func (o of) mine(p httpserver.Pass, ok bool) (httpserver.Pass, bool) {
	if !ok || p.Tenant != o.tenant && p.Scope != httpserver.Admin {
		return httpserver.Pass{}, false
	}
	return p, true
}
