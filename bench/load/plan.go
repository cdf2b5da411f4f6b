package load

import (
	"math/rand/v2"
	"time"
)

// Plan is when calls are due, counted from the start of a run, in order.
type Plan []time.Duration

// Poisson is a plan of independent callers: rate calls a second on average, for
// d, with exponentially distributed gaps.
func Poisson(rate float64, d time.Duration, seed uint64) Plan {
	if rate <= 0 || d <= 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	plan := make(Plan, 0, int(rate*d.Seconds())+1)
	for at := gap(r, rate); at < d; at += gap(r, rate) {
		plan = append(plan, at)
	}
	return plan
}

func gap(r *rand.Rand, rate float64) time.Duration {
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}

// Steady is a plan with equal gaps: rate calls a second for d.
func Steady(rate float64, d time.Duration) Plan {
	if rate <= 0 || d <= 0 {
		return nil
	}
	n := int(rate * d.Seconds())
	plan := make(Plan, n)
	for i := range plan {
		plan[i] = time.Duration(float64(i) / rate * float64(time.Second))
	}
	return plan
}

// Burst is a plan of n calls at the same instant.
func Burst(n int) Plan { return make(Plan, n) }

// Duration is when the last call is due.
func (p Plan) Duration() time.Duration {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1]
}
