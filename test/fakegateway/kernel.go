package fakegateway

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Kernel is one fake kernel. Any goroutine may call its methods.
type Kernel struct {
	server *Server
	id     string
	shell  chan request
	gone   chan struct{}

	mu       sync.Mutex
	session  string                 // guarded by mu
	state    string                 // guarded by mu
	clients  map[*client]bool       // guarded by mu
	cell     *Cell                  // guarded by mu: the one that runs
	count    int                    // guarded by mu: execution count
	ended    bool                   // guarded by mu: gone is closed
	wake     chan struct{}          // guarded by mu: closed at the next shell request
	stray    int                    // guarded by mu: interrupts that hit no cell
	types    map[string]int         // guarded by mu: requests by type
	inputs   map[string]chan string // guarded by mu: waiting input requests
	loseIdle int                    // guarded by mu
	sent     int                    // guarded by mu: how many messages there were; their ids count them
	mute     bool                   // guarded by mu

	// bufferFor is the session whose messages are buffered while it is away, ""
	// for none; history is what a kernel remembers that can repeat its output.
	bufferFor string         // guarded by mu
	buffer    []Message      // guarded by mu
	history   []Message      // guarded by mu
	numbers   map[string]int // guarded by mu: how many messages a parent has had
	attached  int            // guarded by mu
	lose      int            // guarded by mu
	swallowed map[string]int // guarded by mu: what vanished on its way in, by type
	pending   atomic.Bool    // an interrupt waits for the next request on shell
	// outMu keeps messages in order while a buffer is handed over.
	outMu sync.Mutex
}

// request is a message with the connection that it came from.
type request struct {
	from *client
	Message
}

func newKernel(s *Server, id string) *Kernel {
	s.mu.Lock()
	f := s.faults
	s.mu.Unlock()
	return &Kernel{
		server: s, id: id,
		shell:   make(chan request, 1024),
		gone:    make(chan struct{}),
		session: newID(), state: "idle",
		clients: map[*client]bool{}, wake: make(chan struct{}),
		types: map[string]int{}, numbers: map[string]int{}, swallowed: map[string]int{}, inputs: map[string]chan string{},
		loseIdle: f.LoseIdle, mute: f.Mute,
	}
}

// ID returns the kernel's id.
func (k *Kernel) ID() string { return k.id }

// StrayInterrupts counts the interrupts that came while no cell ran.
func (k *Kernel) StrayInterrupts() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stray
}

// Received returns how many requests of a type came.
func (k *Kernel) Received(typ string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.types[typ]
}

// Connections returns how many WebSockets are open.
func (k *Kernel) Connections() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.clients)
}

// model is the REST form of the kernel.
func (k *Kernel) model() map[string]any {
	k.server.mu.Lock()
	state := k.server.faults.State
	k.server.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if state == "" {
		state = k.state
	}
	return map[string]any{
		"id": k.id, "name": "python3", "last_activity": "2024-01-01T00:00:00.000000Z",
		"execution_state": state, "connections": len(k.clients),
	}
}

// everybody returns the connections of this moment.
func (k *Kernel) everybody() []*client {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]*client, 0, len(k.clients))
	for c := range k.clients {
		out = append(out, c)
	}
	return out
}

// header makes one of the kernel's own session.
func (k *Kernel) header(typ string) map[string]any {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent++
	return header(typ, k.session, fmt.Sprintf("%s_1_%d", k.session, k.sent))
}

func header(typ, session, id string) map[string]any {
	return map[string]any{
		"msg_id": id, "msg_type": typ, "session": session,
		"username": "fake", "date": "2024-01-01T00:00:00.000000Z", "version": "5.3",
	}
}

// Publish sends a message of the kernel's process on iopub to everybody.
// parent may be nil.
func (k *Kernel) Publish(typ string, parent, content map[string]any) {
	k.deliver("", Message{Channel: "iopub", Header: k.header(typ), Parent: parent, Content: content})
}

// Announce sends a message of the server itself: its session is that of the
// connection, as jupyter_server does.
func (k *Kernel) Announce(typ string, parent, content map[string]any) {
	for _, c := range k.everybody() {
		c.send(Message{Channel: "iopub", Header: header(typ, c.session, newID()), Parent: parent, Content: content})
	}
}

// Raw sends a frame as it is to everybody; kind is that of gorilla/websocket.
func (k *Kernel) Raw(kind int, data []byte) {
	for _, c := range k.everybody() {
		c.write(kind, data)
	}
}

// end stops the kernel's process.
func (k *Kernel) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.ended = true
		k.state = "dead"
		close(k.gone)
	}
}

// Die ends the process as a crash that the server notices: everybody is told
// "dead", REST answers 404, and the connections stay open.
func (k *Kernel) Die() {
	k.end()
	k.server.forget(k)
	k.Announce("status", nil, map[string]any{"execution_state": "dead"})
}

// Vanish ends the process without a word, as a deletion by somebody else does.
func (k *Kernel) Vanish() {
	k.end()
	k.server.forget(k)
}

// Replace puts a new process under the same id, as the server's restarter does.
// Announced, everybody is told "restarting"; otherwise only what the new
// process sends shows it.
func (k *Kernel) Replace(announced bool) {
	k.mu.Lock()
	k.session = newID()
	cell := k.cell
	k.cell = nil
	k.mu.Unlock()
	if cell != nil {
		cell.fence()
	}
	if announced {
		k.Announce("status", nil, map[string]any{"execution_state": "restarting"})
	}
}

// Drop closes all connections without a farewell.
func (k *Kernel) Drop() {
	for _, c := range k.everybody() {
		c.drop()
	}
}

// Freeze makes all connections half open: nothing is read or written any more.
func (k *Kernel) Freeze() {
	for _, c := range k.everybody() {
		c.freeze()
	}
}

// LoseIdle makes the next n answers to kernel_info come without status on iopub.
func (k *Kernel) LoseIdle(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loseIdle = n
}
