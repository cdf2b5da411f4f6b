package jupyter

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Kernel is one live kernel and the connection to it; [Client.Start] makes one.
// Execute is called from one goroutine at a time, everything else from any.
type Kernel struct {
	client *Client
	id     string
	// session is our session id: header.session of what we send, and the
	// identity of the connection.
	session string
	// v1 is the framing that all connections of the kernel agreed on.
	v1 bool

	// out and arm are what the writer goroutine serves: frames to send, and the
	// wish for a look at the settling execution. Only out may hold a sender
	// back.
	out chan frame
	arm chan struct{}
	// gate holds one token while an execution begins and while an interrupt is
	// on its way, so that a late interrupt cannot hit the next execution.
	gate chan struct{}
	// interrupts joins what sees interrupts through; it is added to with mu held,
	// and not once the kernel is lost.
	interrupts sync.WaitGroup
	// bye makes everybody who hangs up wait for the first who does.
	bye sync.Once
	// loops joins the reader, and with it the writer.
	loops sync.WaitGroup
	// mangled is how many of its messages were none, sound how many were since; of the reader.
	mangled, sound int
	// life ends when the kernel is lost.
	life context.Context
	end  context.CancelFunc
	ids  atomic.Uint64

	// info is written by Start before anybody else has the kernel.
	info KernelInfo

	mu            sync.Mutex
	link          *link           // guarded by mu: the latest connection
	replays       bool            // guarded by mu: the kernel can repeat its output
	keeps         bool            // guarded by mu: the kernel knows that it is left to another client
	left          *execution      // guarded by mu: what Attach found and Resume has not taken; nil: nothing
	kernelSession string          // guarded by mu: "" until the kernel is verified
	lost          *LostError      // guarded by mu: set once, together with the end of life
	heard         int64           // guarded by mu: messages of the verified process
	away          bool            // guarded by mu: the link broke, and there is no other yet
	lostAt        time.Time       // guarded by mu
	exec          *execution      // guarded by mu: the one that runs, or was abandoned and runs
	asks          map[string]*ask // guarded by mu: requests other than executions, by message id
	stats         Stats           // guarded by mu
	numbers       sequence        // guarded by mu
	holes         holes           // guarded by mu
	owed          owed            // guarded by mu: their answers that have not come
	strangers     int64           // guarded by mu: messages that answer other clients
	gone          bool            // guarded by mu: the server has confirmed the deletion
	announces     bool            // guarded by mu: the kernel has told once that code begins
	// stirred: an interrupt was sent since the last execution began; doubt: the
	// server never answered one; interruptedAt is when the last one was sent.
	stirred, doubt bool      // guarded by mu
	interruptedAt  time.Time // guarded by mu
}

// Stats counts what a kernel sent that belongs to no running execution.
type Stats struct {
	// Background counts output of executions that had ended or were abandoned,
	// as threads write it, and BackgroundBytes its content. It was dropped.
	Background, BackgroundBytes int64
	// Foreign counts messages that answer no request, or one of another client.
	Foreign int64
	// Dropped counts messages that the kernel sent and that never came, as far
	// as it can be known.
	Dropped int64
	// Received counts all messages, and ReceivedBytes their frames.
	Received, ReceivedBytes int64
	// Reconnects counts the connections after the first, Replayed the messages
	// that the kernel repeated since a connection had swallowed them.
	Reconnects, Replayed int64
}

// ask is a request whose answers somebody waits for.
type ask struct {
	// answers has room for all that can come; the reader never waits for it.
	answers chan<- answer
	// frame is the request, to be sent again when the connection broke.
	frame frame
}

// answer is one message about an ask.
type answer struct {
	id, session string
	// idle is true for the status on iopub, false for the reply.
	idle    bool
	content []byte
}

// newKernel takes over a connection and starts its reader and its writer. left is what another
// client has left to it; nil: nothing.
func newKernel(c *Client, id, session string, ws *websocket.Conn, tcp *tunedConn, left *execution) *Kernel {
	k := &Kernel{
		client:  c,
		id:      id,
		session: session,
		out:     make(chan frame, 16),
		arm:     make(chan struct{}, 1),
		gate:    make(chan struct{}, 1),
		asks:    map[string]*ask{},
	}
	first := newLink(ws, tcp)
	k.link, k.v1 = first, first.v1()
	if left != nil {
		k.takeOver(left)
	}
	k.life, k.end = context.WithCancel(context.Background())
	k.loops.Go(func() { k.serve(first) })
	return k
}

// generation is what the ids of the requests of one client are apart from those of the one before,
// in whose session it goes on.
const generation = 1 << 32

// takeOver makes x what the kernel runs, before anything of it is read.
func (k *Kernel) takeOver(x *execution) {
	k.replays, k.keeps, k.exec, k.left = true, true, x, x
	k.ids.Store((x.before/generation + 1) * generation)
	k.arm <- struct{}{} // for the first question
}

// dropLeft lets go of what Resume was not called for.
func (k *Kernel) dropLeft() {
	k.mu.Lock()
	x := k.left
	k.left = nil
	k.mu.Unlock()
	if x != nil {
		x.spool.Close()
	}
}

// ID returns the server's id of the kernel.
func (k *Kernel) ID() string { return k.id }

// KernelSession returns the session id that names the kernel's process.
func (k *Kernel) KernelSession() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kernelSession
}

// Info returns what the kernel told of itself when it was verified.
func (k *Kernel) Info() KernelInfo { return k.info }

// Stats returns the counts of this moment.
func (k *Kernel) Stats() Stats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// Done is closed when the kernel is lost or was deleted.
func (k *Kernel) Done() <-chan struct{} { return k.life.Done() }

// Err returns nil until Done is closed, then a [*LostError].
func (k *Kernel) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost == nil {
		return nil
	}
	return k.lost
}

// declare says that the kernel is lost, once: what waits is woken, and the
// writer ends. The reader ends what runs, when its connection has. It never
// waits.
func (k *Kernel) declare(e *LostError) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost != nil {
		return
	}
	k.lost, k.lostAt = e, time.Now()
	k.end()
}

// endLost ends the execution of a kernel that is lost. It is the last thing
// that the reader does: what had come too early is handed over before.
func (k *Kernel) endLost() {
	k.mu.Lock()
	x := k.exec
	var steps []step
	if x != nil {
		steps = x.cursor.giveUp()
	}
	k.mu.Unlock()
	if x == nil {
		return
	}
	k.walk(x, steps)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !x.over {
		x.lost = k.lost
		k.endLocked(x)
	}
}

// lose declares the kernel lost and cuts its connection, with which the reader
// ends too. It never waits.
func (k *Kernel) lose(e *LostError) {
	k.declare(e)
	_ = k.current().tcp.Close()
}

// current returns the latest link.
func (k *Kernel) current() *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link
}

// hangUp ends the connection as the protocol wants it, waits a little for the
// server to agree, and joins the reader and the writer.
//
// The wait matters. A server that has to delete a kernel whose WebSocket it
// believes to be open destroys sockets that its event loop still watches; the
// next connection that gets the same descriptor fails, whoever it belongs to.
func (k *Kernel) hangUp(e *LostError) {
	k.bye.Do(func() {
		if k.Err() == nil {
			k.declare(e)
			text := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			l := k.current()
			if l.ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(farewell)) == nil {
				cut := time.AfterFunc(farewell, func() { _ = l.tcp.Close() })
				k.loops.Wait()
				cut.Stop()
			}
		}
		_ = k.current().tcp.Close()
		k.loops.Wait()
		k.interrupts.Wait()
		k.dropLeft()
		k.client.claimed.Delete(k.id)
	})
}

// farewell bounds the wait for the server's side of a close.
const farewell = 250 * time.Millisecond

// Delete ends the kernel on the server and the connection to it. An execution
// that runs is lost. It returns nil when the kernel is known to be gone, and
// may be called again when it did not.
func (k *Kernel) Delete(ctx context.Context) error {
	k.hangUp(&LostError{Reason: "it was deleted"})
	k.mu.Lock()
	gone, settled := k.gone, time.Duration(0)
	if k.lost.Replaced {
		settled = time.Until(k.lostAt.Add(k.client.opts.RestartSettle))
	}
	k.mu.Unlock()
	if gone {
		return nil
	}
	// A server that has to delete a kernel while it restarts it loses sight
	// of the process that it is about to start.
	if settled > 0 {
		t := time.NewTimer(settled)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done(): // better a deletion too early than none
		}
	}
	if err := k.client.Delete(ctx, k.id); err != nil {
		return err
	}
	k.mu.Lock()
	k.gone = true
	k.mu.Unlock()
	return nil
}

// newID returns a message id that is unique in our session.
func (k *Kernel) newID() string {
	return k.session + "_" + strconv.FormatUint(k.ids.Add(1), 10)
}

// asked reports whether a message id is one of newID, of this process or of an earlier one
// with the same session; those of a server in our session have one number more.
func (k *Kernel) asked(id string) bool {
	n, ours := strings.CutPrefix(id, k.session+"_")
	_, err := strconv.ParseUint(n, 10, 64)
	return ours && err == nil
}

// message builds a frame of our session.
func (k *Kernel) message(channel, typ, id string, parent *header, content any) (frame, error) {
	return encodeMessage(k.v1, channel, header{MsgID: id, Session: k.session, MsgType: typ}, parent, content)
}

// send hands a frame to the writer. It waits only while the writer is behind.
func (k *Kernel) send(ctx context.Context, f frame) error {
	select {
	case k.out <- f:
		return nil
	case <-k.Done():
		return k.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask sends a request without content; its answers go to the channel until
// forget is called.
func (k *Kernel) ask(ctx context.Context, channel, typ string, answers chan<- answer) (id string, err error) {
	id = k.newID()
	f, err := k.message(channel, typ, id, nil, noContent{})
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	k.owed.ask(id)
	k.asks[id] = &ask{answers: answers, frame: f}
	k.mu.Unlock()
	if err := k.send(ctx, f); err != nil {
		k.forget(id)
		return "", err
	}
	return id, nil
}

// forget ends the interest in the answers to these requests.
func (k *Kernel) forget(ids ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		delete(k.asks, id)
	}
}
