package fleet

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// State is what a node's record says of it.
type State string

// The states of a node. The last two are final.
const (
	// Up: it takes keys.
	Up State = "up"
	// Draining: it keeps the keys that it has, and takes no others.
	Draining State = "draining"
	// Dead: another node has seen no renewal for TTL and a tenth.
	Dead State = "dead"
	// Left: it has ended all that it had.
	Left State = "left"
)

// Final reports whether a node of this state never acts again.
func (s State) Final() bool { return s == Dead || s == Left }

// Load is how much a node has to do, for who places new keys.
type Load struct {
	// Sessions is how many it serves, Warm how many it could start at once.
	Sessions int `json:"sessions"`
	Warm     int `json:"warm,omitempty"`
	// Busy is how much of its processors is in use, from 0 to 1.
	Busy float64 `json:"busy,omitempty"`
}

// Node is the record of a node.
type Node struct {
	// ID names one life of the node.
	ID string `json:"id"`
	// URL is where it is reached.
	URL   string `json:"url"`
	State State  `json:"state"`
	// Seq counts its renewals, from 1.
	Seq uint64 `json:"seq"`
	// TTL is how long a renewal lasts, in nanoseconds in the record.
	TTL     time.Duration     `json:"ttl"`
	Version string            `json:"version,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Load    Load              `json:"load"`
	// By is the ID of the node that has declared this one dead.
	By string `json:"by,omitempty"`
}

// Claim is the record of a key.
type Claim struct {
	Key string `json:"key"`
	// Epoch is that of the owner, or of the last one.
	Epoch uint64 `json:"epoch"`
	// First is the first epoch since all before were forgotten.
	First uint64 `json:"first,omitempty"`
	// Node is the ID of the owner, "" when the key was released.
	Node string `json:"node,omitempty"`
	// TTL is that of the owner: how long its silence lasts when it has no record.
	TTL time.Duration `json:"ttl"`
	// Write counts what the owner has written in this life, whatever the key, so that no
	// two of its records are the same.
	Write uint64 `json:"write"`
	// Used is the last epoch before this one in which a turn may have begun; 0: none.
	Used uint64 `json:"used,omitempty"`
	// By is the node that has ended what Used had in order, and Why a clause that says for
	// what reason; "" when no owner has said so.
	By  string `json:"by,omitempty"`
	Why string `json:"why,omitempty"`
	// Ended is when the key was released, in seconds of Unix by the clock of who has: it
	// says when the record has served, and decides nothing else.
	Ended int64 `json:"ended,omitempty"`
	// Kept is what the owner calls the record of what the key has, written down for whoever
	// has the key next; "": there is none. Until is until when it is there, in seconds of Unix.
	Kept  string `json:"kept,omitempty"`
	Until int64  `json:"until,omitempty"`
	// Written is when that was said last, in seconds of Unix by the clock of who has. It stays when
	// the key has again what was kept, until its owner ends or drops that.
	Written int64 `json:"written,omitempty"`
	// Before is what Written was of the epoch Used, where the key had again what was kept and the
	// owner has not ended it in order.
	Before int64 `json:"before,omitempty"`
	// Recent has IDs of the last turns, the newest last: in the strict mode, and where a record
	// is kept. All says that those of the epoch Used are all among them.
	Recent []string `json:"recent,omitempty"`
	All    bool     `json:"all,omitempty"`
}

// outdated is when what the key has was written down last, if it has changed since; 0: it is not
// known to have.
func (c Claim) outdated() int64 {
	if c.Kept != "" {
		return 0
	}
	return c.Written
}

// after reports whether c was written after d: within an epoch the owner alone writes.
func (c Claim) after(d Claim) bool {
	return c.Epoch > d.Epoch || c.Epoch == d.Epoch && c.Write > d.Write
}

// outdates reports whether an entry has a claim of the key that was not written after c.
func (c Claim) outdates(e Entry, key string) bool {
	other, found, err := readClaim(e, key)
	return err == nil && found && !other.after(c)
}

// orphaned is a claim whose owner is over, released by another.
func (c Claim) orphaned(now time.Time) Claim {
	next := c
	next.Node, next.Used, next.Ended = "", c.Epoch, now.Unix()
	next.By, next.Why, next.All, next.Before = "", "", false, c.outdated() // the others were of an earlier epoch
	next.Write++
	return next
}

// The first parts of keys of a directory.
const (
	nodePrefix  = "node."
	claimPrefix = "session."
)

// nodeKey is where the record of a node is.
func nodeKey(id string) string { return nodePrefix + id }

// claimKey is where the claim of a key is: a directory's keys are short and of few letters.
func claimKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return claimPrefix + hex.EncodeToString(sum[:16])
}

// newID makes the ID of a life of the node of a name.
func newID(name string) string {
	short := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return short[:min(len(short), 60)] + "-" + hex.EncodeToString(random[:])
}

// encode writes a record, which json always can.
func encode(record any) []byte {
	b, err := json.Marshal(record)
	if err != nil {
		panic(fmt.Sprintf("fleet: a record of %T: %v", record, err))
	}
	return b
}

// readNode reads the record of a node; there is none for an entry without a revision.
func readNode(e Entry) (n Node, found bool, err error) {
	if e.Rev == "" {
		return Node{}, false, nil
	}
	if err := json.Unmarshal(e.Value, &n); err != nil {
		return Node{}, false, fmt.Errorf("read the record %s: %w", e.Key, err)
	}
	if nodeKey(n.ID) != e.Key {
		return Node{}, false, fmt.Errorf("the record %s is about node %q", e.Key, n.ID)
	}
	return n, true, nil
}

// readClaim reads the claim of a key, "" for that of the entry; there is none for an entry
// without a revision.
func readClaim(e Entry, key string) (c Claim, found bool, err error) {
	if e.Rev == "" {
		return Claim{}, false, nil
	}
	if err := json.Unmarshal(e.Value, &c); err != nil {
		return Claim{}, false, fmt.Errorf("read the record %s: %w", e.Key, err)
	}
	if key == "" && claimKey(c.Key) == e.Key {
		key = c.Key
	}
	if c.Key != key {
		return Claim{}, false, fmt.Errorf("the record %s is about another key than the one that was asked for", e.Key)
	}
	return c, true, nil
}

// Past is how the epoch [Ownership.Used] came to its end, when its owner has ended it in
// order; the zero value says that nobody has said so.
type Past struct {
	// Node is the ID of that owner. While it lives, it knows what was begun in that epoch: of
	// the rest nothing was.
	Node string
	// Why is the reason, a clause.
	Why string
	// All says that this owner knows, too, what was begun in that epoch: a turn of an ID that was
	// is refused with [ErrBegun], and of others nothing was.
	All bool
	// Kept is what was kept when this epoch began, see [Ownership.Kept]; also when no owner
	// has ended anything in order.
	Kept string
	// Before is when what the key had was written down last, where its owner had that again and has
	// then ended nothing in order: what was kept is older than what that owner answered last, and
	// nobody has it. It is by the clock of who wrote it down. Zero: nothing is known of such a time.
	Before time.Time
}

// past is what a claim says of the epoch Used.
func (c Claim) past() Past {
	p := Past{Node: c.By, Why: c.Why, All: c.All, Kept: c.Kept}
	if c.Before != 0 {
		p.Before = time.Unix(c.Before, 0).UTC()
	}
	return p
}
