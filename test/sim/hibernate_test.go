package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// told is an outlet that keeps what the last cell prints.
type told struct{ text string }

func (o *told) Emit(_ context.Context, e messages.Event) error {
	if s, ok := e.(messages.Stream); ok {
		o.text = s.Text
	}
	return nil
}
func (o *told) Flush(context.Context) messages.Output { return messages.Output{} }

// sleepiness is what is known of a session from outside.
type sleepiness struct {
	n int // what it has counted; 0: it has nothing
	// used are the owners of the calls since it had nothing, ever those of all its calls.
	used, ever map[string]bool
	lossy      bool
	// doubt says that it may have been lost without a word to anyone yet.
	doubt bool
}

// TestHibernationHolds: whatever the order of calls, idle times, evictions, kills, failed
// writes and failed restores, a session has what it last had or is told that it has not, it
// is never given anything older, and those whose calls it has served may have it.
func TestHibernationHolds(t *testing.T) {
	t.Parallel()
	some := uint64(24)
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		some = 1000
	}
	seeds := make([]uint64, 0, some)
	for i := range some {
		seeds = append(seeds, i+1)
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	for _, seed := range seeds {
		policy := []hibernate.Policy{hibernate.Lossless, hibernate.Lossy}[seed%2]
		t.Run(fmt.Sprintf("%s/%d", policy, seed), func(t *testing.T) {
			t.Parallel()
			scratch := t.TempDir()
			synctest.Test(t, func(t *testing.T) { newNap(t, seed, policy, scratch).run() })
		})
	}
}

// nap is one schedule. One goroutine uses it.
type nap struct {
	t        *testing.T
	rnd      *rand.Rand
	policy   hibernate.Policy
	s        *shelf
	k        *hibernate.Keeper
	system   *supervisor.System
	sessions map[string]*sleepiness
	log      []string
}

const (
	napTTL      = time.Minute
	napCapacity = 3
)

func newNap(t *testing.T, seed uint64, policy hibernate.Policy, scratch string) *nap {
	n := &nap{
		t: t, rnd: rand.New(rand.NewPCG(seed, 4)), policy: policy, sessions: map[string]*sleepiness{},
		s: &shelf{records: map[string]*shelved{}, awake: map[string]*dreamer{}},
	}
	var err error
	n.k, err = hibernate.New(hibernate.Options{Store: n.s, Policy: policy, Scratch: scratch})
	require.NoError(t, err)
	ko := kernel.Options{Backend: dreamers{n.s}, Hibernation: n.k}
	g := gateway.Options{
		Name: "sim", Hibernation: n.k, StopTimeout: ko.StopTimeout(),
		Strategy: gateway.Policy{IdleTTL: napTTL, MaxKernels: napCapacity, Hibernate: true}.Strategy(),
		NewKernel: func(s gateway.KernelSpec) supervisor.Behaviour {
			o := ko
			o.Key, o.Past, o.Once, o.Owner, o.Served = s.Key, s.Past, s.Once, s.Owner, s.Served
			return kernel.New(o)
		},
	}
	n.system, err = supervisor.Start(t.Context(), supervisor.SystemOptions{
		Children: []supervisor.Spec{{Key: "sim", Kind: "gateway", New: func() supervisor.Behaviour { return gateway.New(g) }}},
	})
	require.NoError(t, err)
	return n
}

func (n *nap) run() {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		report := n.system.Shutdown(ctx)
		n.k.Close()
		if !report.Clean() || len(n.system.Bugs()) > 0 || len(n.s.awake) > 0 {
			n.t.Errorf("%+v %v %d interpreters are left\n%v", report, n.system.Bugs(), len(n.s.awake), n.log)
		}
	}()
	for range 60 {
		name := []string{"a", "b", "c", "d", "e"}[n.rnd.IntN(5)]
		p := n.sessions[name]
		if p == nil {
			p = &sleepiness{used: map[string]bool{}, ever: map[string]bool{}}
			n.sessions[name] = p
		}
		owner := []string{"x", "y", "z", ""}[min(n.rnd.IntN(9), 3)%4]
		if n.rnd.IntN(6) > 0 {
			owner = []string{"x", "y"}[n.rnd.IntN(2)]
		}
		switch do := n.rnd.IntN(20); {
		case do < 9:
			n.call(name, p, owner, "count")
		case do < 10:
			n.call(name, p, owner, "lossy")
		case do < 13:
			n.hibernate(name, p)
		case do < 15:
			n.idle()
		case do < 16:
			n.kill(name, p)
		case do < 17:
			n.forget(name, p)
		case do < 18:
			n.release(owner)
		default:
			n.s.mu.Lock()
			n.s.broken = !n.s.broken
			n.note("broken %v", n.s.broken)
			n.s.mu.Unlock()
		}
		synctest.Wait()
		n.s.mu.Lock()
		for id := range n.s.awake {
			n.require(n.s.records[id] == nil, "%s is awake, and what it was is kept", id)
		}
		n.require(n.s.peak <= napCapacity, "%d interpreters", n.s.peak)
		n.s.mu.Unlock()
	}
}

func (n *nap) note(format string, args ...any) {
	n.log = append(n.log, fmt.Sprintf(format+"\n", args...))
}

func (n *nap) require(ok bool, format string, args ...any) {
	n.t.Helper()
	if !ok {
		n.t.Fatalf(format+"\n%v", append(args, n.log)...)
	}
}

// look returns whether a session is on disk, and whether it has an interpreter.
func (n *nap) look(name string) (asleep, awake bool) {
	synctest.Wait()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	id := sessionKey(name).ID()
	return n.s.records[id] != nil, n.s.awake[id] != nil
}

// call makes a call, and holds what it is told and finds against what is known.
func (n *nap) call(name string, p *sleepiness, owner, code string) {
	asleep, awake := n.look(name)
	n.s.mu.Lock()
	broken := n.s.broken
	n.s.mu.Unlock()
	out := &told{}
	r, err := supervisor.Ask[messages.Result](n.t.Context(), n.system.Ref("sim"), messages.Execute{
		ID: messages.NewID(), Key: sessionKey(name), Owner: owner, Out: out, Cells: []messages.Cell{{Code: code}},
	})
	n.require(err == nil, "%s: %v", name, err)
	n.note("call %s by %q: asleep %v awake %v: %s %s %s %s", name, owner, asleep, awake, r.Outcome, r.State, out.text, r.Reason)
	mine := p.used[owner] || p.used[""]
	if r.Outcome == messages.OutcomeNotStarted {
		n.require(asleep && (broken || !mine), "%s was not started", name)
		still, _ := n.look(name)
		n.require(still, "%s: what could not be restored is gone", name)
		time.Sleep(time.Second) // the kernel that could not be is no more
		n.doubts()
		return
	}
	n.require(r.Outcome == messages.OutcomeOK, "%s: %s", name, r.Outcome)
	n.require(!asleep || !broken && (mine || p.ever[owner] || p.ever[""]), "%s was restored for %q", name, owner)
	switch r.State {
	case messages.StateKept, messages.StateRestored:
		n.require((r.State == messages.StateRestored) == asleep, "%s is %s", name, r.State)
		n.require(p.n > 0 && out.text == strconv.Itoa(p.n+1), "%s has counted %s after %d", name, out.text, p.n)
	default:
		n.require(r.State == messages.StateFresh && out.text == "1", "%s is %s and has counted %s", name, r.State, out.text)
		n.require(!asleep, "%s begins anew, and was kept", name)
		n.require(p.n == 0 || p.doubt && r.Reason != "", "%s begins anew after %d: %q", name, p.n, r.Reason)
		p.n, p.used = 0, map[string]bool{}
	}
	p.n, p.lossy, p.doubt = p.n+1, code == "lossy", false
	p.used[owner], p.ever[owner] = true, true
	n.doubts()
}

// doubts looks which sessions are gone: a call takes the place of another one, which may be
// one that cannot be kept.
func (n *nap) doubts() {
	for name, p := range n.sessions {
		asleep, awake := n.look(name)
		p.doubt = p.doubt || p.n > 0 && !asleep && !awake
	}
}

// hibernate asks for it.
func (n *nap) hibernate(name string, p *sleepiness) {
	_, awake := n.look(name)
	n.s.mu.Lock()
	broken, tried := n.s.broken, n.s.tried
	n.s.mu.Unlock()
	_, err := supervisor.Ask[messages.Hibernated](n.t.Context(), n.system.Ref("sim"), messages.Hibernate{Key: sessionKey(name)})
	n.note("hibernate %s: %v", name, err)
	asleep, _ := n.look(name)
	refused, _ := errors.AsType[*messages.HibernateRefused](err)
	switch {
	case !awake || p.doubt || p.n == 0: // or one in which nothing has run
		n.require(refused != nil && refused.Reason == messages.HibernateNoKernel, "%s: %v", name, err)
	case p.lossy && n.policy == hibernate.Lossless:
		n.require(refused != nil && refused.Reason == messages.HibernateLossy, "%s: %v", name, err)
		n.require(n.s.tried == tried, "%s was read again", name)
	case broken:
		n.require(refused != nil && refused.Reason == messages.HibernateFailed, "%s: %v", name, err)
	default:
		n.require(err == nil && asleep, "%s: %v", name, err)
	}
	time.Sleep(time.Second)
}

// idle lets time pass: what may go to disk is there.
func (n *nap) idle() {
	n.note("idle")
	time.Sleep(5 * napTTL)
	for name, p := range n.sessions {
		_, awake := n.look(name)
		n.require(!awake || n.s.broken || p.lossy && n.policy == hibernate.Lossless, "%s is awake", name)
	}
}

// kill ends the interpreter of a session: what it had is gone.
func (n *nap) kill(name string, p *sleepiness) {
	n.s.mu.Lock()
	i := n.s.awake[sessionKey(name).ID()]
	n.s.mu.Unlock()
	n.note("kill %s: %v", name, i != nil)
	if i != nil {
		i.over(&kernel.LostError{Reason: "the kernel process died"})
		p.doubt = true
		time.Sleep(time.Second)
	}
}

// forget resets or closes a session.
func (n *nap) forget(name string, p *sleepiness) {
	var msg any = messages.Close{Key: sessionKey(name)}
	if n.rnd.IntN(2) == 0 {
		msg = messages.Reset{Key: sessionKey(name)}
	}
	n.note("%T %s", msg, name)
	_, err := supervisor.Ask[any](n.t.Context(), n.system.Ref("sim"), msg)
	n.require(err == nil, "%v", err)
	p.n = 0
	time.Sleep(time.Second)
	asleep, _ := n.look(name)
	n.require(!asleep, "%s is kept", name)
}

// release is what a host does when an owner leaves.
func (n *nap) release(owner string) {
	if owner == "" {
		return
	}
	n.note("release %s", owner)
	_, err := supervisor.Ask[any](n.t.Context(), n.system.Ref("sim"), messages.ReleaseOwner{Owner: owner})
	n.require(err == nil, "%v", err)
	_ = n.k.Release(n.t.Context(), owner) // a broken disk is told
	time.Sleep(time.Second)
	for name, p := range n.sessions {
		asleep, awake := n.look(name)
		delete(p.used, owner)
		switch {
		case !asleep && !awake && p.n > 0:
			n.require(p.doubt || len(p.used) == 0 || len(p.used) == 1 && p.used[""], "%s ended with %s, and others use it", name, owner)
			p.n, p.used = 0, map[string]bool{}
		case !n.s.broken:
			delete(p.ever, owner)
		}
	}
}
