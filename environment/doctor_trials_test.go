package environment

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/testpython"
)

// played is a Trial that does what a test says, and notes what it was asked.
type played struct {
	plan  Plan
	wrong error
	run   func(s Settings, c Cell) (Tried, error)
	asked []string
}

func (p *played) Plan(_ Settings, problem error) (Plan, error) {
	if problem != nil {
		return Plan{Why: "there is a problem", Warm: p.plan.Warm}, p.wrong
	}
	return p.plan, p.wrong
}

func (p *played) Run(_ context.Context, s Settings, c Cell) (Tried, error) {
	p.asked = append(p.asked, c.Session+" on "+s.Backend)
	return p.run(s, c)
}

// escapes answers the code of an escape: nothing was possible.
func escapes(detail string, prevented bool) []byte {
	text, _ := json.Marshal([]Escape{{Attempt: "write a file outside", Prevented: prevented, Detail: detail}})
	return text
}

// endless is a Trial whose cell never ends.
type endless struct{ played }

func (e *endless) Run(ctx context.Context, _ Settings, c Cell) (Tried, error) {
	e.asked = append(e.asked, c.Timeout.String())
	<-ctx.Done()
	return Tried{Err: context.Cause(ctx)}, nil
}

// TestATrialIsGivenUp when its time is over in which this program did not stand still: the
// host is given more for it.
func TestATrialIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &endless{}
		x := &examination{ctx: t.Context(), d: DoctorOptions{Trial: e}}
		begin := time.Now()
		tried, err := x.run(Settings{}, Cell{Code: "while True: pass"}, 30*time.Second)
		require.NoError(t, err)
		require.EqualError(t, tried.Err, "it gave no answer in 30 s")
		require.InDelta(t, 30*time.Second, time.Since(begin), float64(time.Second))
		require.Equal(t, []string{"2m30s"}, e.asked)
	})
}

// TestDoctorTries runs what needs a host on one that is played.
func TestDoctorTries(t *testing.T) {
	t.Parallel()
	python := testpython.Path(t)
	well := func(s Settings, c Cell) (Tried, error) {
		tried := Tried{OK: true, Text: "42", Took: 5 * time.Millisecond, Forks: true}
		if s.Cage != nil {
			tried.Level, tried.JSON = "landlock", escapes("PermissionError", true)
		}
		return tried, nil
	}
	but := func(change func(s Settings, tried *Tried) error) func(Settings, Cell) (Tried, error) {
		return func(s Settings, c Cell) (Tried, error) {
			tried, _ := well(s, c)
			if err := change(s, &tried); err != nil {
				return Tried{}, err
			}
			return tried, nil
		}
	}
	for name, tc := range map[string]struct {
		run  func(Settings, Cell) (Tried, error)
		want []Finding // among the findings
	}{
		"all is well": {well, []Finding{
			{Check: checkBackend, State: FindingOK, Detail: "gateway, since it is there"},
			{Check: checkWarm, State: FindingOK, Detail: "none waits"},
			{Check: checkRunner, State: FindingOK, Detail: "a cell ran, 5 ms from nothing"},
			{Check: checkFork, State: FindingOK, Detail: "sessions are forked from a warm interpreter"},
			{Check: checkIsolation, State: FindingOK, Detail: "the strongest rung here is landlock: 1 of 1 attempts to escape were prevented, as promised; it is used where it is asked for"},
			{Check: checkGateway, State: FindingOK, Detail: "a cell ran, 5 ms from nothing"},
			{Check: checkKernels, State: FindingOK, Detail: "the strongest rung here is landlock: 1 of 1 attempts to escape were prevented, as promised; it is used where it is asked for"},
		}},
		"no host": {but(func(Settings, *Tried) error { return errors.New("it does not start") }), []Finding{
			{Check: checkRunner, State: FindingFailed, Detail: "it does not start"},
			{Check: checkIsolation, State: FindingFailed, Detail: "it does not start"},
			{Check: checkGateway, State: FindingFailed, Detail: "it does not start"},
		}},
		"no call": {but(func(_ Settings, t *Tried) error { t.Err = errors.New("it is refused"); return nil }), []Finding{
			{Check: checkRunner, State: FindingFailed, Detail: "a cell could not be run: it is refused"},
			{Check: checkIsolation, State: FindingFailed, Detail: "the rung landlock cannot be used: try to escape: it is refused"},
		}},
		"an exception": {but(func(_ Settings, t *Tried) error { t.OK, t.Text = false, "no kernel\nat all"; return nil }), []Finding{
			{Check: checkRunner, State: FindingFailed, Detail: "a cell did not run: no kernel"},
			{Check: checkIsolation, State: FindingFailed, Detail: "the rung landlock cannot be used: try to escape: the code did not run: no kernel\nat all"},
			{Check: checkGateway, State: FindingFailed, Detail: "a cell did not run: no kernel", Mend: "coppice setup"},
		}},
		"no fork": {but(func(_ Settings, t *Tried) error { t.Forks, t.NoFork = false, "it has no os.fork"; return nil }), []Finding{{
			Check: checkFork, State: FindingWarning, Detail: "sessions are not forked, and take 50 ms to start in place of 2: it has no os.fork",
			Mend: "take another interpreter with --python, one that has os.fork",
		}}},
		"it is not known whether it forks": {but(func(_ Settings, t *Tried) error { t.ForksErr = errors.New("gone"); return nil }), []Finding{
			{Check: checkFork, State: FindingFailed, Detail: "gone"},
		}},
		"something is left": {but(func(s Settings, t *Tried) error { t.Left = []Left{{"gateway/x", "it hangs"}}; return nil }), []Finding{
			{Check: checkRunner, State: FindingFailed, Detail: "gateway/x did not end: it hangs", Mend: "coppice doctor --fix"},
			{Check: checkIsolation, State: FindingFailed, Detail: "gateway/x did not end: it hangs", Mend: "coppice doctor --fix"},
			{Check: checkGateway, State: FindingFailed, Detail: "gateway/x did not end: it hangs", Mend: "coppice doctor --fix"},
		}},
		"an escape": {but(func(s Settings, t *Tried) error { t.JSON = escapes("written", false); return nil }), []Finding{{
			Check: checkIsolation, State: FindingFailed, Detail: "the rung landlock does not hold: code could write a file outside (written)",
			Mend: "do not run code that you do not trust on this system",
		}, {
			Check: checkKernels, State: FindingFailed, Detail: "the rung landlock does not hold: code could write a file outside (written)",
			Mend: "do not run code that you do not trust on this system",
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &played{plan: Plan{Backend: "gateway", Why: "it is there", Warm: "none waits"}, run: tc.run}
			s := Settings{Home: t.TempDir(), Python: python, Backend: "auto", KernelName: "python3"}
			d, err := Doctor(t.Context(), DoctorOptions{Settings: s, Trial: p})
			require.NoError(t, err)
			for _, want := range tc.want {
				require.Contains(t, d.Findings, want)
			}
			require.Equal(t, []string{"doctor on runner", "escape on runner", "doctor on gateway", "escape on gateway"}, p.asked)
			require.Equal(t, name == "all is well" || name == "no fork", d.Healthy, d.Findings)
		})
	}
}

// TestDoctorWithoutTrials leaves out what needs a host, and says so.
func TestDoctorWithoutTrials(t *testing.T) {
	t.Parallel()
	s := Settings{Home: t.TempDir(), Python: testpython.Path(t)}
	d, err := Doctor(t.Context(), DoctorOptions{Settings: s})
	require.NoError(t, err)
	out := map[string]bool{}
	for _, f := range d.Findings {
		if f.State == FindingSkipped && f.Detail == "left out" {
			out[f.Check] = true
		}
	}
	require.Empty(t, cmp.Diff(map[string]bool{checkBackend: true, checkWarm: true, checkRunner: true, checkIsolation: true, checkGateway: true, checkKernels: true}, out))
	wrong := errors.New("these settings cannot be")
	_, err = Doctor(t.Context(), DoctorOptions{Settings: s, Trial: &played{wrong: wrong}})
	require.ErrorIs(t, err, wrong)

	s.Python = "/no/such/python"
	d, err = Doctor(t.Context(), DoctorOptions{Settings: s, Trial: &played{}})
	require.NoError(t, err)
	require.Contains(t, d.Findings, Finding{Check: checkBackend, State: FindingFailed, Detail: "none can be used: there is a problem"})
	require.False(t, d.Healthy)
}

// TestTryToEscape makes what code aims at outside, and takes it away again.
func TestTryToEscape(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/not/there/yet"
	ran := 0
	got, err := TryToEscape(t.Context(), dir, func(_ context.Context, code string) (Escaped, error) {
		ran++
		require.Contains(t, code, `\"host\":`)
		require.Contains(t, code, "escape-")
		require.True(t, strings.HasSuffix(code, escapeCode))
		return Escaped{Level: "landlock", JSON: []byte(`[{"attempt":"read a file outside","prevented":true},{"attempt":"connect to a port of this machine"}]`), Network: true}, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, ran)
	require.Equal(t, []Escape{{Attempt: "read a file outside", Prevented: true, Promised: true}, {Attempt: "connect to a port of this machine"}}, got)
	left, err := TryToEscape(t.Context(), dir, func(context.Context, string) (Escaped, error) { return Escaped{JSON: []byte("no")}, nil })
	require.ErrorContains(t, err, "read what the code tells")
	require.Empty(t, left)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	for rung, want := range map[string][2]bool{"off": {}, "privileges": {true}, "bubblewrap": {true}, "gvisor": {false, true}} {
		prevented, own := promised(rung, "gain rights by a setuid program", false)
		require.Equal(t, want, [2]bool{prevented, own}, rung)
		prevented, own = promised(rung, "signal the host", false)
		require.Equal(t, rung == "bubblewrap" || rung == "gvisor", prevented, rung)
		require.False(t, own)
	}
}
