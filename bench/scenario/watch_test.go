package scenario

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are values that lie about a line, each remembering some of the one before.
func rows(seed uint64, slope, memory float64) (x, y []float64) {
	r := rand.New(rand.NewPCG(seed, 3))
	off := 0.0
	for i := range 80 {
		off = memory*off + r.NormFloat64()
		x, y = append(x, float64(i)), append(y, 50+slope*float64(i)+off)
	}
	return x, y
}

// The interval holds the true slope in about 19 of 20 series, and a growth that
// matters is told from none.
func TestTrendTellsGrowthFromNoise(t *testing.T) {
	for name, memory := range map[string]float64{"independent": 0, "neighbours alike": .6} {
		t.Run(name, func(t *testing.T) {
			const all = 400
			held, seen := 0, 0
			for seed := range uint64(all) {
				slope, within := trend(rows(seed, 0, memory))
				if slope-within <= 0 && 0 <= slope+within {
					held++
				}
				slope, within = trend(rows(seed, .1, memory))
				if slope-within > 0 {
					seen++
				}
			}
			require.Greater(t, held, all*90/100)
			require.Greater(t, seen, all*90/100)
		})
	}
}

func TestTrendOfLittle(t *testing.T) {
	for name, tc := range map[string]struct{ x, y []float64 }{
		"nothing": {}, "one": {[]float64{1}, []float64{1}}, "one instant": {[]float64{2, 2, 2, 2}, []float64{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			slope, within := trend(tc.x, tc.y)
			require.Zero(t, slope)
			require.Zero(t, within)
		})
	}
	slope, within := trend([]float64{1, 2, 3, 4, 5}, []float64{2, 4, 6, 8, 10})
	require.InDelta(t, 2, slope, 1e-9)
	require.InDelta(t, 0, within, 1e-9)
}
