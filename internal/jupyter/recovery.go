package jupyter

import (
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// The two messages of ours, on the control channel: a kernel whose first code
// installed the answer numbers what it sends and repeats it. See
// [Kernel.EnableReplay].
const (
	typeRepeatRequest = "coppice_repeat_request"
	typeRepeatReply   = "coppice_repeat_reply"
)

const (
	// repeatPage is how much output one answer may hold, so that it gets through
	// a connection that breaks again and again.
	repeatPage = 256 << 10
	// confirmBytes and confirmMessages are how much comes before the kernel is
	// told that it came. They are a fraction of what it sends without being told.
	confirmBytes    = 512 << 10
	confirmMessages = 150
	// gapWait is how long a gap may be one of order: replies and output come
	// over different sockets.
	gapWait = 50 * time.Millisecond
	// longestQuiet bounds the pauses after which a kernel that says nothing is
	// asked whether it said something.
	longestQuiet = 30 * time.Second
)

// recovery is what an execution with numbers knows of its questions to the
// kernel. Its fields are guarded by the kernel's mu.
//
// A question is repeated until it is answered: asking twice does no harm. An
// answer counts when the idle of its question has come too. That is a message on
// iopub, so everything older on iopub has come or never will, and what the
// answer does not hold is lost.
type recovery struct {
	// want says that a question is to be sent now, confirm that the kernel has to hear
	// what came.
	want, confirm bool
	// broke says that a connection broke since the last answer.
	broke bool
	// open are the questions of this connection, by message id.
	open map[string]*question
	// asked is when the last one was sent, behind since when something is
	// missing; zero for never, and for nothing.
	asked, behind time.Time
	// chance measures the server's since the first question that is not answered; nil:
	// there is none.
	chance *opportunity.Meter
	// confirmed is the number up to which the kernel knows that all came, bytes what
	// came since then.
	confirmed, bytes int64
	// tries counts the questions since the last answer, fruitless the answers in
	// a row that brought nothing although something is missing. quiet is the
	// pause before the next question without cause.
	tries, fruitless int
	quiet            time.Duration
	// limited says that the server drops output by its rate limit: the kernel is
	// asked all the time.
	limited bool
	// final says that a probe was answered without a sign of the execution: when
	// the kernel knows nothing of it either, it never got it.
	final bool
}

// question is one request for messages.
type question struct {
	page *page // the answer, once it came
	idle bool
}

// repeatContent is the content of a request.
type repeatContent struct {
	Parent string `json:"parent"`
	// Since is the number up to which everything came, Until the last number
	// that is asked for, 0 for all. Limit bounds the answer; with 0, there is
	// none, and the request only confirms.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	Limit int   `json:"limit"`
	// Noted is up to where what was handed over is noted for another client, see
	// [ExecuteRequest.Keep]; nil: nothing is.
	Noted *int64 `json:"noted,omitempty"`
	// Alone says that nobody takes what code has to say.
	Alone bool `json:"alone,omitempty"`
}

// EnableReplay says that the kernel numbers the messages about an execution in
// header.coppice_number, from 1, and answers a coppice_repeat_request on its
// control channel. From then on, neither a connection that breaks nor a server
// that drops messages costs output. It is called before the first Execute that
// matters. The content of a request is {parent, since, until, limit}; package
// pysrc has the other side, and says what it promises.
func (k *Kernel) EnableReplay() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.replays = true
}

// Replays reports whether it does, so that another client can go on with an execution of this one.
func (k *Kernel) Replays() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.replays
}

// recoverLocked decides what x asks the kernel for now, when it has numbers.
// The kernel's mu is held. ok is false when the usual rules for an execution
// that does not settle are to be followed.
func (k *Kernel) recoverLocked(x *execution) (again time.Duration, out []frame, ok bool) {
	r, now, settle := &x.recovery, time.Now(), k.client.opts.Settle
	if r.confirm {
		r.confirm, r.bytes, r.confirmed = false, 0, x.cursor.next-1
		out = k.repeatLocked(x, nil, 0)
	}
	switch {
	case r.want:
	case len(r.open) > 0: // again, when it takes too long
		if wait := r.asked.Add(min(settle<<min(r.tries, 4), longestQuiet)).Sub(now); wait > 0 {
			return wait, out, true
		}
	case !r.behind.IsZero():
		if wait := r.behind.Add(gapWait).Sub(now); wait > 0 {
			return wait, out, true
		}
	case r.limited:
		if wait := r.asked.Add(gapWait).Sub(now); wait > 0 {
			return wait, out, true
		}
	case x.probeDue || len(x.probes) > 0:
		return 0, out, false
	default:
		r.quiet = max(r.quiet, settle)
		since := x.lastSeen
		if r.asked.After(since) {
			since = r.asked
		}
		if wait := since.Add(r.quiet).Sub(now); wait > 0 {
			return wait, out, true
		}
		r.quiet = min(2*r.quiet, max(longestQuiet, settle))
		r.final = r.final || x.replied != x.idle
	}
	if r.chance != nil && patience(5*settle).Expired(r.chance.Measure()) != opportunity.Open {
		// It dealt with a question and did not answer: somebody took the answers
		// away from it. The reader has to tell, and this draws a message for it.
		for _, q := range r.open {
			x.unanswered = x.unanswered || (q.idle && q.page == nil)
		}
	}
	q := &question{}
	frames := k.repeatLocked(x, q, repeatPage)
	r.want, r.asked, r.behind = false, now, time.Time{}
	r.tries++
	if r.chance == nil {
		r.chance = opportunity.Begin(k.client.server(), nil)
	}
	return settle, append(out, frames...), true
}

// repeatLocked makes a request; without q it only confirms.
func (k *Kernel) repeatLocked(x *execution, q *question, limit int) []frame {
	id := k.newID()
	content := repeatContent{Parent: x.id, Since: x.cursor.next - 1, Until: x.cursor.until(), Limit: limit}
	if x.keeps {
		noted := x.noted
		if x.abandoned {
			noted = content.Since
		}
		content.Noted = &noted
	}
	f, err := k.message(chanControl, typeRepeatRequest, id, nil, content)
	if err != nil { // cannot happen: it is numbers and an id
		return nil
	}
	if q != nil {
		if x.recovery.open == nil {
			x.recovery.open = map[string]*question{}
		}
		x.recovery.open[id] = q
	}
	k.owed.ask(id)
	return []frame{f}
}

// takeNumbered handles a message of x that has a number. It is called by the
// reader.
func (k *Kernel) takeNumbered(x *execution, m *message) {
	k.mu.Lock()
	if x.over {
		k.mu.Unlock()
		return
	}
	r := &x.recovery
	x.lastSeen, r.quiet = time.Now(), 0
	steps := x.cursor.take(m)
	r.bytes += int64(len(m.content))
	arm := k.lookLocked(x)
	k.mu.Unlock()
	k.walk(x, steps)
	if arm {
		k.mu.Lock()
		k.armLocked()
		k.mu.Unlock()
	}
}

// lookLocked notes what follows from the state of x's cursor, and reports
// whether the writer has to act.
func (k *Kernel) lookLocked(x *execution) (arm bool) {
	r := &x.recovery
	switch {
	case !x.cursor.behind():
		r.behind = time.Time{}
	case r.behind.IsZero() && len(r.open) == 0:
		r.behind, arm = time.Now(), true
	}
	if !r.confirm && (r.bytes >= confirmBytes || x.cursor.next-1-r.confirmed >= confirmMessages) {
		r.confirm, arm = true, true
	}
	return arm || r.want
}

// walk hands over what left the cursor of x. It is called by the reader.
func (k *Kernel) walk(x *execution, steps []step) {
	for _, s := range steps {
		if s.message == nil {
			k.noteGap(x, s.lost, s.to)
			continue
		}
		k.routeExecution(x, s.message)
	}
}

// isNumbered reports whether m goes through the cursor of x. Numbers beyond what
// a JSON number can hold exactly do not count.
func (x *execution) isNumbered(m *message) bool {
	return x.numbered && m.header.Number > 0 && m.header.Number < 1<<53
}

// withoutNumbers notes that a message of x came without a number. When it is the
// first of all, the numbers were removed on the way, and what connections swallow is
// reported as with kernels that do not number. Later on, it is one of a child process,
// whose messages cannot be numbered. It is called by the reader.
func (k *Kernel) withoutNumbers(x *execution) {
	k.mu.Lock()
	without := x.numbered && x.cursor.high == 0
	broke := without && x.breaks > 0
	if without {
		x.numbered, x.recovery = false, recovery{}
		x.probeDue = x.probeDue || broke
		k.armLocked()
	}
	k.mu.Unlock()
	if broke {
		k.noteGap(x, 0, 0)
	}
}

// questionOf returns the question of x that has this id, nil for none.
func (x *execution) questionOf(k *Kernel, id string) *question {
	k.mu.Lock()
	defer k.mu.Unlock()
	return x.recovery.open[id]
}

// routeAnswer takes what the kernel says about a question. It is called by the
// reader.
func (k *Kernel) routeAnswer(x *execution, q *question, m *message) *LostError {
	switch {
	case m.header.MsgType == typeRepeatReply:
		p, err := decodePage(m)
		if err != nil {
			return &LostError{Reason: "it sent a recovery that cannot be read", Err: err}
		}
		q.page = p
	case m.channel == chanIOPub && m.header.MsgType == typeStatus && decodeState(m.content) == "idle":
		q.idle = true
	default:
		return nil
	}
	if q.page == nil || !q.idle {
		return nil
	}
	k.takePage(x, *q.page)
	return nil
}

// takePage goes on with what the kernel has repeated, and decides what follows from it.
func (k *Kernel) takePage(x *execution, p page) {
	k.mu.Lock()
	if x.over {
		k.mu.Unlock()
		return
	}
	r := &x.recovery
	clear(r.open) // those before it ask for what this one brought
	before, broke, started := x.cursor.next, r.broke, x.count > 0
	r.broke, r.chance, r.tries, x.unanswered = false, nil, 0, false
	k.stats.Replayed += int64(len(p.messages))
	steps := x.cursor.answer(p)
	if x.left && p.asks != nil && p.asks.header.Number < before { // the client before has asked
		again := *p.asks
		again.header.Number = 0
		steps = append(steps, step{message: &again})
	}
	x.left = x.left && p.more
	progress := x.cursor.next > before
	switch {
	case p.more:
		r.want, r.fruitless = true, 0
	case x.cursor.behind() && !progress:
		if r.fruitless++; r.fruitless > 3 { // it does not have what others sent in its name
			steps = append(steps, x.cursor.giveUp()...)
			r.fruitless = 0
		}
	default:
		r.fruitless = 0
	}
	if progress {
		clear(x.probes) // they were asked too early
	}
	r.want = r.want || (r.limited && progress)
	final := r.final
	r.final = false
	switch {
	case p.sent > 0: // it runs, or has run
	case final && !started:
		x.unheard = true
	case broke || final:
		x.probeDue = true // it may be on its way
	}
	k.mu.Unlock()

	if p.sent == 0 && started && broke {
		k.noteGap(x, 0, 0) // the kernel does not number any more
	}
	k.walk(x, steps)
	k.afterPage(x, final && !progress)
}

// afterPage decides what follows from an answer that has been handed over. fruitless says
// that it was the last word about x, and brought nothing.
func (k *Kernel) afterPage(x *execution, fruitless bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case x.over:
		return
	case x.unheard:
		k.giveUpLocked(x)
		return
	case fruitless && x.replied != x.idle:
		x.probeDue = true // the kernel knows of no other half either
	}
	k.judgeLocked(x)
	k.lookLocked(x)
	k.armLocked()
}

// goOnWithout ends the wait for an answer that does not come: what is missing is
// reported, and what waited for it goes on. It is called by the reader.
func (k *Kernel) goOnWithout(x *execution) {
	k.mu.Lock()
	if x.over || !x.unanswered {
		k.mu.Unlock()
		return
	}
	r := &x.recovery
	broke := r.broke
	clear(r.open)
	x.unanswered, r.chance, r.tries, r.broke, r.want = false, nil, 0, false, false
	steps := x.cursor.giveUp()
	x.probeDue = broke
	k.armLocked()
	k.mu.Unlock()
	if broke {
		k.noteGap(x, 0, 0)
	}
	k.walk(x, steps)
}
