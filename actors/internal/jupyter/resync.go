package jupyter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/coppice-run/coppice/actors/internal/spool"
	"github.com/coppice-run/coppice/messages"
)

// The two messages of ours, on the control channel: a kernel whose first code
// installed the answer to them keeps its latest output, and repeats what a
// connection swallowed. See [Kernel.EnableReplay].
const (
	typeReplayRequest = "coppice_replay_request"
	typeReplayReply   = "coppice_replay_reply"
)

// replayPage is how many bytes of output one answer may hold, so that it gets
// through a connection that breaks again and again.
const replayPage = 256 << 10

// resync is the recovery of one execution, after its connection broke or when
// the numbers of its messages have a gap: the kernel repeats, page by page, what
// did not come. What comes meanwhile waits.
// Its fields are guarded by the kernel's mu; held is used by the reader alone.
type resync struct {
	// id is that of the request that is under way, "" for none; want says that
	// one is to be sent.
	id   string
	want bool
	// asked is when the last request was sent, expired that no answer came.
	asked   time.Time
	expired bool
	// broke says that a connection broke, so something is missing for certain.
	broke bool
	// since is the number up to which nothing is missing, but for what is not
	// in have.
	since int64
	have  []int64
	// held are the frames that came meanwhile.
	held *spool.Spool
}

// replayContent is the content of a request.
type replayContent struct {
	Parent string  `json:"parent"`
	Since  int64   `json:"since"`
	Have   []int64 `json:"have"`
	Limit  int     `json:"limit"`
}

// replayPageContent is the content of a reply.
type replayPageContent struct {
	Messages []struct {
		ID      string           `json:"id"`
		Channel string           `json:"channel"`
		Type    string           `json:"type"`
		Content messages.RawJSON `json:"content"`
	} `json:"messages"`
	// Evicted is the largest number that the kernel does not remember.
	Evicted int64 `json:"evicted"`
	// Sent is how many messages with this parent there were.
	Sent int64 `json:"sent"`
	More bool  `json:"more"`
}

// newResync begins a recovery.
func (k *Kernel) newResync() *resync {
	return &resync{want: true, held: spool.New(spool.Options{Memory: k.client.opts.SpoolMemory, Dir: k.client.opts.SpoolDir})}
}

// EnableReplay says that the kernel answers a coppice_replay_request on its
// control channel, whose content is {parent, since, have, limit}: with the
// messages whose parent has that id and whose number is larger than since and
// not in have, oldest first, up to limit bytes. From then on, a connection that
// breaks costs no output. It is called before the first Execute that matters.
func (k *Kernel) EnableReplay() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replays = k.numbers.prefix != ""
}

// resyncLocked is the part of settle that drives a recovery.
func (k *Kernel) resyncLocked(x *execution) (again time.Duration, f *frame) {
	s, wait := k.resync, 5*k.client.opts.Settle
	if !s.want {
		if left := wait - time.Since(s.asked); left > 0 {
			return left, nil
		}
		// Nobody answers. The reader goes on without it at the next message, and
		// this draws one.
		s.expired = true
		if f, err := k.message(chanControl, typeInfoRequest, k.newID(), nil, noContent{}); err == nil {
			k.asked++
			return 0, &f
		}
		return 0, nil
	}
	s.want, s.id, s.asked = false, k.newID(), time.Now()
	if s.have == nil {
		s.have = []int64{}
	}
	out, err := k.message(chanControl, typeReplayRequest, s.id, nil, replayContent{Parent: x.id, Since: s.since, Have: s.have, Limit: replayPage})
	if err != nil { // cannot happen: it is numbers and an id
		s.expired = true
		return 0, nil
	}
	k.asked++
	return wait, &out
}

// isReplay reports whether m answers the request that is under way.
func (k *Kernel) isReplay(m *message) bool {
	if m.header.MsgType != typeReplayReply {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.resync != nil && k.resync.id != "" && k.resync.id == m.parent.MsgID
}

// routeReplay takes one page of what the connection swallowed. It is called by
// the reader.
func (k *Kernel) routeReplay(x *execution, m *message) *LostError {
	var page replayPageContent
	if json.Unmarshal(m.content, &page) != nil || x == nil {
		return &LostError{Reason: "it sent a recovery that cannot be read"}
	}
	k.mu.Lock()
	s := k.resync
	if s == nil {
		k.mu.Unlock()
		return nil
	}
	s.id = ""
	forgotten := page.Evicted - s.since
	if forgotten > 0 {
		forgotten -= int64(len(s.have) - len(slices.DeleteFunc(slices.Clone(s.have), func(n int64) bool { return n <= page.Evicted })))
		s.since = page.Evicted
	}
	k.mu.Unlock()
	if forgotten > 0 {
		k.noteGap(x, forgotten)
	}
	for _, in := range page.Messages {
		_, n, ok := numberOf(in.ID)
		if !ok {
			continue
		}
		k.mu.Lock()
		k.numbers.observe(in.ID)
		dup := x.replayed[n]
		if x.replayed == nil {
			x.replayed = map[int64]bool{}
		}
		x.replayed[n] = true
		s.since = max(s.since, n)
		k.stats.Replayed++
		k.mu.Unlock()
		if !dup {
			k.routeExecution(x, &message{
				channel: in.Channel, content: in.Content, parent: m.parent,
				header: header{MsgID: in.ID, MsgType: in.Type, Session: m.header.Session},
			})
		}
	}
	k.mu.Lock()
	if page.More && len(page.Messages) > 0 && k.resync == s {
		s.want = true
		k.armLocked()
		k.mu.Unlock()
		return nil
	}
	finished := x.replied && x.idle
	if finished {
		x.sentByKernel = page.Sent
	}
	k.mu.Unlock()
	k.endResync(x, s)
	return nil
}

// hold keeps a message of x until what came before it is there; false when
// nothing is being recovered.
func (k *Kernel) hold(x *execution, m *message) bool {
	k.mu.Lock()
	s := k.resync
	k.mu.Unlock()
	if s == nil {
		return false
	}
	if err := s.held.Put(append([]byte{byte(m.kind)}, m.frame...)); err != nil {
		k.mu.Lock()
		x.notKept++
		x.keepErr = err
		k.mu.Unlock()
	}
	return true
}

// endResync hands over what was held. It is called by the reader.
func (k *Kernel) endResync(x *execution, s *resync) {
	k.mu.Lock()
	if k.resync != s {
		k.mu.Unlock()
		return
	}
	k.resync = nil
	expired := s.expired
	// What is missing up to here is known, or told.
	last := x.mark.last
	x.mark = k.markLocked()
	x.mark.last = last
	finished := x.replied && x.idle
	x.probeDue = !finished
	k.armLocked()
	k.mu.Unlock()
	if finished { // it was only asked what it had sent
		s.held.Close()
		k.complete(x)
		return
	}
	if expired && s.broke {
		k.noteGap(x, 0)
	}
	s.held.CloseWrite()
	defer s.held.Close()
	for {
		rec, err := s.held.Get(context.Background()) // it does not wait: no more is written
		if err != nil {
			if !errors.Is(err, spool.ErrClosed) && !errors.Is(err, io.EOF) {
				k.noteGap(x, 0)
			}
			return
		}
		m, err := decodeFrame(k.v1, int(rec[0]), rec[1:])
		if err == nil && !k.repeated(x, &m) {
			k.routeExecution(x, &m)
		}
	}
}

// repeated reports whether m came before, in a recovery.
func (k *Kernel) repeated(x *execution, m *message) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.replayed == nil {
		return false
	}
	_, n, ok := numberOf(m.header.MsgID)
	return ok && x.replayed[n]
}
