package gateway_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/supervisor"
)

// mortal is a shared process that fails after a time, and is well before that or not.
type mortal struct {
	lives, well time.Duration
	begun       *[]time.Time
}

type (
	dies struct{}
	well struct{}
)

func (m *mortal) Init(ctx *supervisor.Ctx) error {
	*m.begun = append(*m.begun, ctx.Now())
	if m.well > 0 {
		ctx.After(m.well, well{})
	}
	ctx.After(m.lives, dies{})
	return nil
}

func (m *mortal) Handle(ctx *supervisor.Ctx, msg any) error {
	if _, ok := msg.(dies); ok {
		return errors.New("it was killed")
	}
	ctx.Well()
	return nil
}

func (m *mortal) Terminate(*supervisor.Ctx, supervisor.Exit) {}

// A process that was well is started again at once, however often it ends; one that
// never is comes back less and less often, but soon enough for those that wait.
func TestHowSoonTheSharedProcessIsStartedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		lives, well time.Duration
		least, most time.Duration // between its end and the next start, the tenth time and later
	}{
		"it was well":     {lives: 3 * time.Second, well: time.Second, least: 100 * time.Millisecond, most: 100 * time.Millisecond},
		"it never is":     {lives: 500 * time.Millisecond, least: 2 * time.Second, most: 10 * time.Second},
		"it never is, 2m": {lives: 50 * time.Second, least: 2 * time.Second, most: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var begun []time.Time
			server := supervisor.Spec{Key: "server", New: func() supervisor.Behaviour { return &mortal{lives: tc.lives, well: tc.well, begun: &begun} }}
			inTree(t, gateway.Options{Servers: []supervisor.Spec{server}}, func(t *testing.T, tr *tree) {
				time.Sleep(30 * time.Minute)
				require.Equal(t, "1", tr.run("a", "x").Text, "the gateway lives")
			})
			require.Greater(t, len(begun), 25)
			for n := 10; n+1 < len(begun); n++ {
				away := begun[n+1].Sub(begun[n]) - tc.lives
				require.GreaterOrEqual(t, away, tc.least-time.Millisecond)
				require.LessOrEqual(t, away, tc.most+time.Millisecond)
			}
		})
	}
}
