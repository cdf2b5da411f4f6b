package outlive_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// asked is a line to a host that serves: a call of a session, or that the kernel of one is
// to be killed, whichever it is.
type asked struct {
	Session int    `json:"session"`
	ID      string `json:"id,omitempty"`
	Kill    bool   `json:"kill,omitempty"`
}

// counting is the cell of each call: it says how often it has run.
const counting = "try: n += 1\nexcept NameError: n, pad = 1, bytearray(100_000)\nprint(n)"

// serve makes the calls that are asked for, until it is killed.
func (r role) serve(ctx context.Context, host *coppice.Host, tell func(said)) error {
	from := bufio.NewScanner(os.Stdin)
	var calls sync.WaitGroup
	defer calls.Wait()
	for from.Scan() {
		var a asked
		if err := json.Unmarshal(from.Bytes(), &a); err != nil {
			return err
		}
		if a.Kill {
			live, err := host.Sessions(ctx)
			if err != nil {
				return err
			}
			if len(live) > 0 {
				one := live[rand.IntN(len(live))]
				if one.PID > 0 { // it is told first: this host may be killed at once
					tell(said{Killed: one.Key.Session})
					_ = syscall.Kill(one.PID, syscall.SIGKILL)
					tell(said{Killed: one.Key.Session, Dead: true})
				}
			}
			continue
		}
		calls.Go(func() {
			s := said{Session: name(a.Session), Exec: a.ID}
			result, err := host.Session(s.Session, coppice.In(r.Home)).Execute(ctx, coppice.Request{ID: a.ID, Cells: []messages.Cell{{Code: counting}}})
			if err != nil { // its kernels ended one after the other: it starts over
				result.Outcome = messages.OutcomeNotStarted
				_ = host.Session(s.Session, coppice.In(r.Home)).Reset(ctx)
			}
			s.Result = &result
			tell(s)
		})
	}
	return from.Err()
}

// belief is what must be so of a session, from what its caller was told.
type belief struct {
	had  bool         // it has been told of a count
	may  map[int]bool // the counts that it may have
	lost bool         // its kernel was killed since, or nobody knows how its last call ended
	// unsaid says that its host was killed since then: the reason is gone with it.
	unsaid bool
	busy   bool
	tells  int // how many results were told
	// dying is how many kills of its kernel are under way, of which it is not known whether they
	// have happened, and hit that one has while its call was: its result says nothing of that.
	dying int
	hit   bool
}

// killed says that its kernel is about to be killed, or that it was.
func (b *belief) killed(dead bool) {
	if b.busy { // whether its call had ended by then is not known
		b.had = b.had || b.tells > 0
	}
	b.lost, b.hit = true, b.busy
	if b.dying++; dead {
		b.dying -= 2
	}
}

// judge compares a result with what was believed, and returns what is not true of it.
func (b *belief) judge(r messages.Result) string {
	b.busy = false
	b.tells++
	text := ""
	if len(r.Cells) > 0 {
		text = strings.TrimSpace(r.Cells[0].Output)
	}
	var n int
	switch _, err := fmt.Sscan(text, &n); {
	case r.Outcome == messages.OutcomeLost:
		b.lost, b.may = true, map[int]bool{}
		return ""
	case r.Outcome != messages.OutcomeOK:
		b.doubt()
		return ""
	case err != nil:
		return fmt.Sprintf("it is ok, and shows %q", text)
	}
	was := *b
	b.had, b.lost, b.unsaid, b.may = true, b.hit || b.dying > 0, false, map[int]bool{n: true}
	b.hit = false
	switch {
	case r.State == messages.StateFresh && n != 1:
		return fmt.Sprintf("fresh, and it has counted to %d", n)
	case r.State == messages.StateFresh && was.had && !was.lost:
		return fmt.Sprintf("fresh (%s), and nothing had ended it at %v", r.Reason, was.may)
	case r.State == messages.StateFresh && was.had && r.Reason == "" && !was.unsaid:
		return "fresh without a reason"
	case r.State != messages.StateFresh && !was.may[n-1] && (was.had || n != 1):
		return fmt.Sprintf("%s at %d, and it had %v", r.State, n, was.may)
	}
	return ""
}

// doubt says that nobody knows whether the cell ran.
func (b *belief) doubt() {
	b.busy, b.lost = false, true
	next := map[int]bool{1: true, 0: true}
	for n := range b.may {
		next[n], next[n+1] = true, true
	}
	b.may = next
}

// TestSessionsCycle: sessions go to disk and come back, because they are idle and because others
// need their places, while their kernels are killed, and their hosts: each result says what is
// so. COPPICE_TEST_FULL=1 has a thousand sessions do that for ten minutes.
func TestSessionsCycle(t *testing.T) {
	sessions, lasts, every := 40, 5*time.Second, 2*time.Second
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		sessions, lasts, every = 1000, 10*time.Minute, 20*time.Second
	}
	r := newRole(t)
	r.Serve, r.Policy, r.Most, r.Idle = true, hibernate.Lossy, sessions/10, time.Second
	beliefs := map[string]*belief{}
	for i := range sessions {
		beliefs[name(i)] = &belief{may: map[int]bool{}}
	}
	states := map[messages.State]int{}
	var wrong []string
	calls, kernels, hosts := 0, 0, 0
	for end := time.Now().Add(lasts); time.Now().Before(end); hosts++ {
		v := begin(t, r)
		v.until(t, func() bool { return v.ready })
		to := json.NewEncoder(v.stdin)
		flying := 0
		ask := func() {
			for flying < 8 {
				i := rand.IntN(sessions)
				if b := beliefs[name(i)]; !b.busy {
					b.busy = true
					calls++
					flying++
					require.NoError(t, to.Encode(asked{Session: i, ID: fmt.Sprintf("call-%d", calls)}))
				}
			}
		}
		hear := func(s said) {
			switch {
			case s.Killed != "":
				if s.Dead {
					kernels++
				}
				if b := beliefs[s.Killed]; b != nil {
					b.killed(s.Dead)
				}
			case s.Result != nil:
				flying--
				states[s.Result.State]++
				if why := beliefs[s.Session].judge(*s.Result); why != "" {
					wrong = append(wrong, s.Session+": "+why)
				}
			}
		}
		for until := time.Now().Add(every); time.Now().Before(until); {
			ask()
			if rand.IntN(30) == 0 {
				require.NoError(t, to.Encode(asked{Kill: true}))
			}
			require.NoError(t, v.next())
			hear(v.last)
		}
		_ = v.cmd.Process.Kill()
		for v.next() == nil { // what it had told counts
			hear(v.last)
		}
		v.kill()
		for _, b := range beliefs {
			if b.busy {
				b.doubt()
			}
			b.lost = b.lost || b.dying > 0
			b.unsaid, b.dying = b.lost, 0
		}
	}
	t.Logf("%d sessions, %d calls by %d hosts that were killed, %d kernels killed: %v", sessions, calls, hosts, kernels, states)
	require.Empty(t, wrong)
	r.Serve = false
	host := next(t, r)
	require.True(t, host.Shutdown(context.Background()).Clean())
}
