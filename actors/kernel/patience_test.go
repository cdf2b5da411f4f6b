package kernel_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// The sinks of a call get the time that they need, as long as it does not have to
// end.
func TestTheResultOfACallIsWaitedFor(t *testing.T) {
	const over = "\n[output is not complete: the call had to end]"
	for name, tc := range map[string]struct {
		flush time.Duration
		then  func(*tree) // once the cells have ended
		takes time.Duration
		note  string
	}{
		"a machine that has much to do": {flush: 4 * time.Minute, takes: 4 * time.Minute},
		"a sink that is stuck":          {flush: time.Hour, takes: 5 * time.Minute, note: "\n[output is not complete: it took too long]"},
		"a call that is interrupted": {flush: time.Hour, takes: 1500*time.Millisecond + 10*time.Second, note: over, then: func(tr *tree) {
			tr.ref().Tell(messages.Interrupt{Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Exec: "a"})
		}},
		"a kernel that is stopped": {flush: time.Hour, takes: 10 * time.Second, note: over, then: func(tr *tree) {
			_, _, err := supervisor.Begin[bool](tr.ref(), messages.Reset{})
			require.NoError(tr.t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.run("count")
				begin := time.Now()
				reply := tr.begin("a", &fakeOutlet{flush: tc.flush}, "print x")
				synctest.Wait()
				if tc.then != nil {
					tc.then(tr)
				}
				r := tr.wait(reply)
				require.Equal(t, ok, r.Outcome)
				require.Equal(t, "x"+tc.note, r.Cells[0].Output)
				require.Equal(t, tc.takes, time.Since(begin))
			})
		})
	}
}

// An interpreter that has no processor cannot heed an interrupt.
func TestAKernelWithoutAProcessorIsNotGivenUp(t *testing.T) {
	for starved, takes := range map[time.Duration]time.Duration{0: 1500 * time.Millisecond, 10 * time.Second: 11500 * time.Millisecond, time.Hour: 30 * time.Second} {
		inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
			tr.run("count")
			tr.backend.last().starved.Store(int64(starved))
			reply := tr.begin("a", &fakeOutlet{}, "swallow")
			synctest.Wait()
			begin := time.Now()
			tr.ref().Tell(messages.Interrupt{Exec: "a"})
			reason := tr.wait(reply).Reason
			require.Contains(t, reason, kernel.ErrUnresponsive.Error())
			require.Equal(t, starved > 0, strings.Contains(reason, "for a processor"), reason)
			const late = 500 * time.Millisecond // it is looked at now and then
			if starved > 0 {                    // and asked for a sign of life before it is given up
				takes += 750 * time.Millisecond
			}
			require.GreaterOrEqual(t, time.Since(begin), takes)
			require.Less(t, time.Since(begin), takes+late)
		})
	}
}

// A call that the machine has delayed for long says so, and no other does.
func TestACallThatHadNoProcessorSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		starved time.Duration
		code    string
		want    []string
	}{
		"a quiet machine":     {0, "sleep 5s", nil},
		"a moment":            {900 * time.Millisecond, "sleep 5s", nil},
		"little of the time":  {5 * time.Second, "sleep 1m", nil},
		"a short call":        {time.Hour, "sleep 100ms", nil},
		"long":                {3 * time.Second, "sleep 5250ms", []string{"the machine was busy: the code took 5 s, of which it waited 3 s for a processor"}},
		"nearly all of it":    {4950 * time.Millisecond, "sleep 5250ms", []string{"the machine was busy: the code took 5 s, of which it waited 4.9 s for a processor"}},
		"perhaps, at its end": {time.Hour, "sleep 5250ms", nil}, // what tells its end wants a processor, and nobody knows since when
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, kernel.Options{}, func(t *testing.T, tr *tree) {
				tr.run("count")
				tr.backend.last().starved.Store(int64(tc.starved))
				require.Equal(t, tc.want, tr.run(tc.code).Notices)
			})
		})
	}
}
