package supervisor_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestCensus counts children by their kind and their owner, each alone, both, and all.
func TestCensus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		// A key is a kind, an owner, and what becomes of the child.
		d := &handler{spec: func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
			p := strings.Split(key, " ")
			spec := supervisor.Spec{Kind: p[0], Owner: p[1], New: of(behaviour{
				handle: echo.handle,
				terminate: func(*supervisor.Ctx, supervisor.Exit) {
					if p[2] == "ends" || p[2] == "strays" {
						<-release
					}
				},
			})}
			if p[2] == "ends" {
				spec.StopTimeout = time.Hour
			}
			return spec, nil
		}}
		room := false
		decide := scripted(func(ev strategy.Event) []strategy.Directive {
			if e, ok := ev.(strategy.Spawning); ok && strings.Contains(e.Key, "waits") && !room {
				return []strategy.Directive{strategy.Wait(e.Key)}
			}
			return nil
		})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d, Strategy: decide})}})
		gate := sys.Ref("gate")
		for _, key := range []string{"x ann idles 1", "x ann idles 2", "y ann idles", "y bob idles", "x bob ends", "y bob ends", "x ann strays"} {
			answer(t, submit(t, gate, key, 1))
			if !strings.Contains(key, "idles") {
				in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.End(key, supervisor.Exit{})) })
			}
		}
		later(time.Minute)
		var waiting []supervisor.Reply[any]
		for _, key := range []string{"x ann waits", "y bob waits 1", "y bob waits 2"} {
			waiting = append(waiting, submit(t, gate, key, 1))
		}
		const all = math.MaxUint64
		var first uint64
		in(t, gate, func(s *supervisor.Supervisor) {
			ch, ok := s.Child("x ann waits")
			require.True(t, ok)
			first = ch.Turn
		})
		for _, tc := range []struct {
			kind, owner string
			turn        uint64
			want        strategy.Census
		}{
			{"", "", all, strategy.Census{Live: 7, Ending: 2, Strays: 1, Waiting: 3}},
			{"", "", first, strategy.Census{Live: 7, Ending: 2, Strays: 1, Waiting: 1}},
			{"x", "", all, strategy.Census{Live: 4, Ending: 1, Strays: 1, Waiting: 1}},
			{"y", "", all, strategy.Census{Live: 3, Ending: 1, Waiting: 2}},
			{"", "ann", all, strategy.Census{Live: 4, Strays: 1, Waiting: 1}},
			{"", "bob", all, strategy.Census{Live: 3, Ending: 2, Waiting: 2}},
			{"x", "bob", all, strategy.Census{Live: 1, Ending: 1}},
			{"y", "bob", first, strategy.Census{Live: 2, Ending: 1}},
			{"z", "", all, strategy.Census{}},
			{"", "eve", all, strategy.Census{}},
		} {
			require.Equal(t, tc.want, census(t, gate, tc.kind, tc.owner, tc.turn), "%q of %q up to %d", tc.kind, tc.owner, tc.turn)
		}
		in(t, gate, func(*supervisor.Supervisor) { room = true })
		close(release) // they are asked about again as the others end
		for _, w := range waiting {
			answer(t, w)
		}
		synctest.Wait()
		require.Equal(t, strategy.Census{Live: 7}, census(t, gate, "", "", all))
		stop(t, sys)
	})
}

// census is what the index of a supervisor counts.
func census(t *testing.T, gate supervisor.Ref, kind, owner string, turn uint64) (n strategy.Census) {
	t.Helper()
	in(t, gate, func(s *supervisor.Supervisor) { n = s.View().(strategy.Indexed).Index().Census(kind, owner, turn) })
	return n
}
