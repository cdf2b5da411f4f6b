package jupyter

import (
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/spool"
)

// maxProbes is how often a kernel is probed for the missing half of an
// execution before it is given up.
const maxProbes = 3

// execution is one execute_request on its way, or another request that a kernel
// answers like one. Its fields are guarded by the
// kernel's mu, except where they never change or are a channel.
type execution struct {
	id string
	// answer is the type of the reply.
	answer string
	// silent is that of the request: such an execution has no execute_input. It is set before
	// the request is sent, as keeps is.
	silent bool
	// spool takes what belongs to the execution. The reader puts, Execute gets.
	spool *spool.Spool
	// started is closed at the first proof that the code runs, ended when the
	// execution is over in any way.
	started, ended chan struct{}

	running   bool      // started is closed
	over      bool      // ended is closed
	begunAt   time.Time // when it was sent, then when the kernel said busy
	busy      bool
	lastSeen  time.Time // when the last message about it came
	endedAt   time.Time
	replied   bool
	reply     []byte // content of the execute_reply
	idle      bool
	input     *header // of the input request that waits for an answer
	answered  *frame  // the answer to an input request, in case that it gets lost
	probes    map[string]*probe
	noReply   bool // it is over, and the reply will not come
	abandoned bool // its output is not taken any more
	leftOut   bool // but its end is waited for
	// interrupted: somebody has asked for it to stop.
	interrupted bool
	notKept     int64
	keepErr     error
	lost        *LostError
	mark        mark  // of the kernel's numbers when it began
	dropped     int64 // messages that were lost between the kernel and its server
	// sent is true once the writer has begun to send the request; unheard, when
	// the kernel certainly never got it.
	sent, unheard bool
	// breaks counts the connections that broke while it ran; gaps the places
	// where output may be missing for that, and gapMessages what is known to be.
	breaks, gaps int
	gapMessages  int64
	// probeDue: a probe is to be sent as soon as possible.
	probeDue bool
	// numbered says that the kernel numbers the messages about it: they go
	// through the cursor, and what does not come is asked for.
	numbered bool
	cursor   *cursor
	recovery recovery
	// unanswered: the kernel has dealt with a question and did not answer it.
	unanswered bool
	// count is how many messages about it came, outputs how many were output.
	count, outputs int64
	// comms asks for the messages of comms.
	comms bool
	// keeps says that the kernel is to hold what is not noted; noted is the number up to which
	// what was handed over is.
	keeps bool
	noted int64
	// left says that it is of another client, see Attach: a question that was handed over there is
	// still open. before is the number of its id.
	left   bool
	before uint64
	// rateLimited is true when the server said that it drops output.
	rateLimited bool
}

// probe is a request on shell that was sent in order to learn what became of an
// execution.
type probe struct {
	// decisive: it was sent after a break. When both its answers have come and
	// there is no sign of the execution, there will be none.
	decisive    bool
	reply, idle bool
}

// newExecution returns an execution that is about to be sent, whose reply is of a type.
func (c *Client) newExecution(id, answer string) *execution {
	now := time.Now()
	return &execution{
		id: id, answer: answer, spool: spool.New(spool.Options{Memory: c.opts.SpoolMemory, Dir: c.opts.SpoolDir}),
		started: make(chan struct{}), ended: make(chan struct{}),
		begunAt: now, lastSeen: now, probes: map[string]*probe{}, cursor: newCursor(),
	}
}

// run notes that the code runs. The kernel's mu is held.
func (x *execution) run() {
	if !x.running {
		x.running = true
		close(x.started)
	}
}

// endLocked ends x, the kernel's execution. The kernel's mu is held.
func (k *Kernel) endLocked(x *execution) {
	if x.over {
		return
	}
	x.over = true
	x.endedAt = time.Now()
	k.exec = nil
	x.spool.CloseWrite()
	close(x.ended)
}

// settle looks at an execution of which reply or idle is missing. It is called
// by the writer, some time after the other one came, and returns when to look
// again (0: never) and what to send, if anything: a probe, or, to a kernel that
// numbers its messages, a question.
//
// The shell channel and iopub are each first in, first out. A request that is
// sent now is therefore answered on shell after a reply that was sent before,
// and its idle comes after all older output. See "Messaging in Jupyter",
// section "Request-Reply".
func (k *Kernel) settle() (again time.Duration, out []frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.exec
	if x == nil || x.over {
		return 0, nil
	}
	if x.numbered {
		again, out, done := k.recoverLocked(x)
		if done {
			return again, out
		}
		again, more := k.settleLocked(x)
		return again, append(out, more...)
	}
	return k.settleLocked(x)
}

// settleLocked is settle for everything but questions. The kernel's mu is held.
func (k *Kernel) settleLocked(x *execution) (again time.Duration, out []frame) {
	switch {
	case x.probeDue:
		x.probeDue = false
		return k.probeLocked(x, true)
	case x.replied == x.idle:
		return 0, nil
	}
	wait := k.client.opts.Settle
	if quiet := time.Since(x.lastSeen); quiet < wait {
		return wait - quiet, nil
	}
	if len(x.probes) >= maxProbes {
		k.giveUpLocked(x)
		return 0, nil
	}
	return k.probeLocked(x, false)
}

// probeLocked makes a probe of x. The kernel's mu is held.
func (k *Kernel) probeLocked(x *execution, decisive bool) (again time.Duration, out []frame) {
	id := k.newID()
	f, err := k.message(chanShell, typeInfoRequest, id, nil, noContent{})
	if err != nil { // cannot happen: the content is fixed
		k.giveUpLocked(x)
		return 0, nil
	}
	x.probes[id] = &probe{decisive: decisive}
	k.owed.ask(id)
	return k.client.opts.Settle, []frame{f}
}

// settleIn is how long the writer waits before it looks at the execution.
func (k *Kernel) settleIn() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.exec
	switch {
	case x == nil:
		return k.client.opts.Settle
	case x.probeDue || x.numbered: // the look at numbers says when the next one is due
		return 0
	}
	return k.client.opts.Settle
}

// giveUpLocked ends x without its missing half. The kernel's mu is held.
func (k *Kernel) giveUpLocked(x *execution) {
	x.noReply = !x.replied
	k.endLocked(x)
}

// routeExecution handles a message whose parent is x. It is called by the
// reader, the only one who puts records into x's spool.
func (k *Kernel) routeExecution(x *execution, m *message) {
	var rec []byte
	kind := outputKinds[m.header.MsgType]
	if (kind == recordInput) != (m.channel == chanStdin) || kind == recordComm && !x.comms {
		kind = 0
	}

	k.mu.Lock()
	if x.over { // lost in the meantime
		k.mu.Unlock()
		return
	}
	x.lastSeen = time.Now()
	x.count++
	switch {
	case kind != 0 && x.abandoned:
		k.countBackgroundLocked(m)
		x.run()
	case kind != 0:
		x.outputs++
		if kind == recordInput {
			h := m.header
			x.input, x.answered = &h, nil
		}
		rec = m.record(kind)
		x.run()
	case m.channel == chanIOPub && m.header.MsgType == typeExecuteInput:
		k.announces = true
		x.run()
	case m.channel == chanIOPub && m.header.MsgType == typeStatus:
		x.status(decodeState(m.content))
	case m.channel == chanShell && m.header.MsgType == x.answer:
		x.replied, x.input, x.answered = true, nil, nil
		x.reply = append([]byte(nil), m.content...)
	}
	complete, half := x.replied && x.idle, x.replied != x.idle
	k.mu.Unlock()

	if rec != nil {
		k.keep(x, rec)
	}
	switch {
	case complete:
		k.complete(x)
	case half:
		select {
		case k.arm <- struct{}{}:
		default:
		}
	}
}

// status notes what the kernel says of its state. The kernel's mu is held.
func (x *execution) status(state string) {
	switch state {
	case "busy":
		if !x.busy {
			x.busy, x.begunAt = true, x.lastSeen
		}
		if x.silent {
			x.run()
		}
	case "idle":
		x.idle = true
	}
}

// complete ends x, whose reply and idle have come. Numbered messages have told
// already what is missing. It is called by the reader.
func (k *Kernel) complete(x *execution) {
	k.tellHoles(x)
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.over {
		return
	}
	if x.gaps == 0 && x.cursor.high == 0 {
		x.dropped = k.droppedLocked(x.mark)
	}
	k.stats.Dropped += x.dropped
	k.endLocked(x)
}

// keep puts a record into x's spool. No lock is held: it may go to disk.
func (k *Kernel) keep(x *execution, rec []byte) {
	err := x.spool.Put(rec)
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if x.abandoned || x.over {
		k.stats.Background++
		k.stats.BackgroundBytes += int64(len(rec))
		return
	}
	x.notKept++
	x.keepErr = err
}

// routeProbe handles the answer to a probe of x. It is called by the reader.
func (k *Kernel) routeProbe(x *execution, m *message) {
	k.tellHoles(x)
	k.mu.Lock()
	defer k.mu.Unlock()
	p := x.probes[m.parent.MsgID]
	if x.over || p == nil {
		return
	}
	p.idle = p.idle || (m.channel == chanIOPub && m.header.MsgType == typeStatus && decodeState(m.content) == "idle")
	p.reply = p.reply || (m.channel == chanShell && m.header.MsgType == typeInfoReply)
	k.judgeLocked(x)
}

// judgeLocked ends x when the answers to its probes say that no more will come.
// As long as something is being asked for, that may decide.
func (k *Kernel) judgeLocked(x *execution) {
	r := &x.recovery
	if x.over || r.want || len(r.open) > 0 || x.cursor.behind() {
		return
	}
	for _, p := range x.probes {
		switch {
		case (p.idle && x.replied) || (p.reply && x.idle):
			k.giveUpLocked(x)
			return
		case !p.decisive || !p.idle || !p.reply:
		case x.numbered && x.count == 0: // it was not executed; did the kernel get it?
			clear(x.probes)
			r.final, r.want = true, true
			k.armLocked()
			return
		default:
			k.giveUpLocked(x)
			return
		}
	}
}

// limitTexts begin the two messages with which a Jupyter server tells, once,
// that it drops output. Nothing else says so.
var limitTexts = [...]string{"IOPub message rate exceeded.", "IOPub data rate exceeded."}

// saysRateLimited reports whether a stream message of another session than the
// kernel's is such a message.
func saysRateLimited(m *message) bool {
	if m.header.MsgType != typeStream {
		return false
	}
	text := decodeStreamText(m.content)
	for _, t := range limitTexts {
		if strings.HasPrefix(text, t) {
			return true
		}
	}
	return false
}

// markRateLimited puts the notice where output is missing.
func (k *Kernel) markRateLimited(m *message) {
	k.mu.Lock()
	x := k.exec
	if x == nil || x.over || x.id != m.parent.MsgID {
		k.mu.Unlock()
		return
	}
	if x.numbered && x.cursor.high > 0 { // the kernel repeats what the server drops
		x.recovery.limited, x.recovery.want = true, true
		k.armLocked()
		k.mu.Unlock()
		return
	}
	x.rateLimited = true
	x.run()
	keep := !x.abandoned
	k.mu.Unlock()
	if keep {
		k.keep(x, newRecord(recordRateLimited, 0, "", nil))
	}
}

// countBackgroundLocked counts output that belongs to no execution. The kernel's mu is
// held.
func (k *Kernel) countBackgroundLocked(m *message) {
	k.stats.Background++
	k.stats.BackgroundBytes += int64(len(m.content))
}
