package jupyterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// The states of a kernel.
const (
	starting   = "starting"
	idle       = "idle"
	busy       = "busy"
	restarting = "restarting"
	dead       = "dead"
)

// protocol is the version of Jupyter's messages: as of it, a kernel is shut down by the
// control channel.
const protocol = "5.4"

// maxQueue is how many requests may wait for one kernel.
const maxQueue = 1024

// kernel is a session of the host, with the clients that listen to it.
type kernel struct {
	a    *API
	id   string
	spec coppice.Kernelspec
	s    *coppice.Session
	life context.Context
	end  context.CancelFunc
	wake chan struct{} // has room for one: something has come to the queue

	comms    comms
	audience audience

	mu      sync.Mutex
	state   string    // guarded by mu, as the rest
	active  time.Time // of the last message
	process string    // names the process: the session in headers
	count   int       // of the last code that was counted
	lost    bool      // the process has ended, and no request has been told
	asleep  bool      // it made room, and may be kept on disk: the next request shows it
	kept    time.Time // when what is there again was kept on disk, the last that was heard of
	news    string    // what the next code that is shown has to say of that
	queue   []job     // what waits on the shell channel
	past    history   // the code that was counted
	left    bool      // a server before has left it, and no request has come since
}

// job is a request that waits. One without a client starts the kernel again.
type job struct {
	from *client
	message
}

// glance is a kernel at one moment.
type glance struct {
	state       string
	active      time.Time
	connections int
	left        bool
}

type status struct {
	State string `json:"execution_state"`
}

// newKernel returns a kernel that has not been started.
func newKernel(a *API, id string, spec coppice.Kernelspec, s *coppice.Session) *kernel {
	k := &kernel{
		a: a, id: id, spec: spec, s: s, wake: make(chan struct{}, 1), state: starting, active: time.Now(), process: messages.NewID(), audience: audience{clients: map[*client]struct{}{}},
	}
	k.life, k.end = context.WithCancel(a.life)
	return k
}

func (k *kernel) glance() glance {
	n := k.audience.len()
	k.mu.Lock()
	defer k.mu.Unlock()
	return glance{k.state, k.active, n, k.left}
}

// become changes what the kernel is said to do.
func (k *kernel) become(state string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.active = state, time.Now()
}

// up starts the kernel, unless it runs. A call without cells returns when it does, and says
// what is there of an earlier process.
func (k *kernel) up(ctx context.Context) (messages.Result, error) {
	r, err := k.s.Execute(ctx, coppice.Request{})
	if err == nil && r.Outcome != messages.OutcomeOK {
		err = fmt.Errorf("the kernel did not start: %w", r.Err())
	}
	return r, err
}

// attach lets a client listen, and tells it what the kernel does, and what it was asked by a
// connection that it had before. JupyterLab connects anew
// when it hears that a kernel restarts, and shows what it hears after that: a runner has
// restarted by then.
func (k *kernel) attach(c *client) {
	asks := k.audience.join(c)
	if text := apology(c.lost); text != "" {
		c.send(k.make(iopub, "stream", nil, map[string]string{"name": "stderr", "text": text}))
	}
	if state := k.glance().state; state == idle || state == busy { // the others are told by what follows on them
		c.send(k.make(iopub, "status", nil, status{state}))
	}
	if asks.id != "" {
		c.send(asks.asked)
	}
}

// make makes a message. A parent of nil: it belongs to no request.
func (k *kernel) make(channel, kind string, parent json.RawMessage, content any) message {
	m := message{Channel: channel, ID: messages.NewID(), Type: kind, Parent: parent, Metadata: none, Content: none}
	if parent == nil {
		m.Parent = none
	}
	k.mu.Lock()
	k.active = time.Now()
	head := map[string]string{
		"msg_id": m.ID, "msg_type": kind, "username": "coppice", "session": k.process, "date": stamp(k.active), "version": protocol,
	}
	k.mu.Unlock()
	var err error
	if m.Header, err = json.Marshal(head); err == nil {
		if data, wrong := json.Marshal(content); wrong == nil {
			m.Content = data
		} else {
			err = wrong
		}
	}
	if err != nil {
		k.a.o.Logger.Error("a message could not be written", "kernel", k.id, "type", kind, "err", err)
	}
	return m
}

// publish sends a message to all clients.
func (k *kernel) publish(parent json.RawMessage, kind string, content any) {
	k.audience.all(k.make(iopub, kind, parent, content))
}

// reply answers a request.
func (k *kernel) reply(j job, content any) {
	k.audience.one(j.from, k.make(j.Channel, strings.TrimSuffix(j.Type, "_request")+"_reply", j.Header, content))
}

// hear takes what a client sends.
func (k *kernel) hear(c *client, m message) {
	j := job{c, m}
	switch {
	case m.Channel == stdin:
		k.answer(m)
	case m.Channel == control, m.Type == "interrupt_request", m.Type == "shutdown_request":
		k.control(j)
	case m.Channel != shell: // nothing comes from clients there
	case !k.push(j):
		k.refuse(j, "Overloaded", fmt.Sprintf("%d requests wait for this kernel", maxQueue))
	}
}

// push puts a request in the queue; false: it is full.
func (k *kernel) push(j job) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) >= maxQueue {
		return false
	}
	k.queue = append(k.queue, j)
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return true
}

// pop takes the next request from the queue.
func (k *kernel) pop() (job, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.queue) == 0 {
		return job{}, false
	}
	j := k.queue[0]
	k.queue = k.queue[1:]
	return j, true
}

// work serves the requests of the shell channel, until the kernel ends.
func (k *kernel) work() {
	for {
		for k.life.Err() == nil {
			j, ok := k.pop()
			if !ok {
				break
			}
			k.serve(j)
		}
		select {
		case <-k.wake:
		case <-k.life.Done():
			return
		}
	}
}

// abort takes the code that waits from the queue. It is answered, and not run.
func (k *kernel) abort() {
	k.mu.Lock()
	var kept, dropped []job
	for _, j := range k.queue {
		if j.Type == "execute_request" {
			dropped = append(dropped, j)
		} else {
			kept = append(kept, j)
		}
	}
	k.queue = kept
	k.mu.Unlock()
	for _, j := range dropped {
		k.publish(j.Header, "status", status{busy})
		k.reply(j, map[string]string{"status": "aborted"})
		k.publish(j.Header, "status", status{idle})
	}
}

// refuse answers a request that is not served.
func (k *kernel) refuse(j job, name, value string) {
	k.publish(j.Header, "status", status{busy})
	k.reply(j, failure(name, value, nil))
	k.publish(j.Header, "status", status{idle})
}

// died hears that the process has ended, from the tree. It must not block.
func (k *kernel) died(exit messages.Exit) {
	roomy := exit.Kind == messages.ExitEvicted || exit.Kind == messages.ExitHibernated
	switch exit.Kind {
	case messages.ExitReset, messages.ExitShutdown, messages.ExitNormal:
		return // it was asked to
	}
	k.mu.Lock()
	k.asleep = k.asleep || roomy
	k.lost = k.lost || !roomy
	k.mu.Unlock()
	if !roomy {
		k.push(job{})
	}
}

// revive starts a kernel again whose process has ended. One that was kept on disk goes on
// as the same; of another one it is said that it begins anew.
func (k *kernel) revive() error {
	k.mu.Lock()
	lost, asleep := k.lost, k.asleep
	k.lost, k.asleep, k.left = false, false, false
	k.mu.Unlock()
	if asleep && !lost {
		r, err := k.up(k.life)
		k.woke(r.Restored)
		lost = err != nil || r.State == messages.StateFresh
	}
	if !lost {
		return nil
	}
	k.become(restarting)
	k.publish(nil, "status", status{restarting})
	return k.again(k.life)
}

// woke hears what is there again of what was kept on disk, from one result or from several.
func (k *kernel) woke(r *messages.Restored) {
	if r == nil {
		return
	}
	k.mu.Lock()
	heard := k.kept.Equal(r.At)
	if !heard {
		k.kept, k.news = r.At, ""
		if len(r.Lost)+len(r.Changed)+len(r.Notes) > 0 { // else it is as clients expect
			k.news = r.String()
		}
	}
	k.mu.Unlock()
	if !heard {
		k.severed() // objects come back without what they had to frontends
	}
}

// tidings are what is to be said of that, once.
func (k *kernel) tidings() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	news := k.news
	k.news = ""
	return news
}

// restart ends the process, and starts another one. Code that runs ends as interrupted,
// and code that waits is not run. Clients are not told that it is restarting: as with a
// Jupyter Server, that status is for what no one has asked for, and JupyterLab takes it for
// the kernel's death. When the process could not be ended, the kernel is what it was. Who
// asked may leave: it is not stopped half way.
func (k *kernel) restart() error {
	k.abort()
	k.mu.Lock()
	was := k.state
	k.state, k.active = restarting, time.Now()
	k.mu.Unlock()
	if err := k.s.Reset(k.life); err != nil {
		k.mu.Lock()
		if k.state == restarting { // what ran has not ended meanwhile
			k.state = was
		}
		k.mu.Unlock()
		k.a.o.Logger.Warn("a kernel was not restarted", "kernel", k.id, "err", err)
		return err
	}
	return k.again(k.life)
}

// again tells of a new process, and starts it.
func (k *kernel) again(ctx context.Context) error {
	k.mu.Lock()
	k.process, k.count, k.news = messages.NewID(), 0, ""
	k.lost, k.asleep = false, false
	k.past.before++
	k.mu.Unlock()
	k.severed()
	_, err := k.up(ctx)
	state := idle
	if err != nil {
		state = dead
		k.a.o.Logger.Warn("a kernel did not start again", "kernel", k.id, "err", err)
	} else {
		k.publish(nil, "status", status{starting})
	}
	k.become(state)
	k.publish(nil, "status", status{state})
	return err
}

// severed says that no object is left at the other end of any comm: the process in which
// they were is another one now.
func (k *kernel) severed() {
	for _, id := range k.comms.clear() {
		k.publish(nil, commClose, commContent{ID: id, Data: none})
	}
}
