package supervisor

// ctlOp is what an incarnation, a timer or the system tells a supervisor.
type ctlOp uint8

const (
	ctlUp       ctlOp = iota // the incarnation is ready for work
	ctlWell                  // the incarnation does what it is for
	ctlFinished              // the incarnation has finished the work t
	ctlFail                  // the incarnation has failed and is suspended
	ctlDying                 // the incarnation ends by itself; gone follows
	ctlGone                  // the incarnation has ended: its last word
	ctlBack                  // the incarnation was abandoned, and has ended after all
	ctlTimer                 // the supervisor's timer has fired
	ctlDrain                 // take no new work
	ctlSnapshot              // describe the children
)

// ctl is one control message to a supervisor.
type ctl struct {
	op    ctlOp
	c     *incarnation
	t     *ticket
	exit  *Exit
	round *round // with ctlDrain
	snap  *snap  // with ctlSnapshot
}

// refuse lets go of whoever waits for the message to be handled.
func (m ctl) refuse() {
	switch m.op {
	case ctlDrain:
		m.round.leave()
	case ctlSnapshot:
		m.snap.round.leave()
	}
}

// ctlBox carries control messages from children to their supervisor. It is not
// the supervisor's Hollywood mailbox, for three reasons: control overtakes
// data, so that a finished work is known before the next one is looked at; the
// supervisor can wait for it while it terminates; and it goes on working when
// the mailbox is gone, after runtime.Goexit or a poison pill. Any goroutine may
// post.
type ctlBox struct{ box[ctl] }

// close refuses what comes, and ends the rounds that wait in the box.
func (b *ctlBox) close() {
	for _, m := range b.box.close() {
		m.refuse()
	}
}
