package main

import (
	"fmt"
	"time"
)

// clock tells the time that is left: what the remaining steps are expected to
// take, corrected by how the steps before them took.
type clock struct {
	begin     time.Time
	all, past time.Duration // expected
	now       func() time.Time
}

func newClock(steps []step) *clock {
	c := &clock{begin: time.Now(), now: time.Now}
	for _, s := range steps {
		c.all += s.expect
	}
	return c
}

func (c *clock) done(s step) { c.past += s.expect }

// left is the expected time to the end.
func (c *clock) left() time.Duration {
	factor := 1.0
	if took := c.now().Sub(c.begin); c.past > 0 {
		// A minute as expected counts besides: the first steps are short.
		factor = float64(took+time.Minute) / float64(c.past+time.Minute)
	}
	return time.Duration(float64(c.all-c.past) * min(max(factor, .5), 5))
}

// String is "4m10s, 21m left".
func (c *clock) String() string {
	left := c.left().Round(time.Minute)
	if left < 2*time.Minute {
		left = c.left().Round(5 * time.Second)
	}
	return fmt.Sprintf("%s, %s left", c.now().Sub(c.begin).Round(time.Second), briefly(left))
}

func briefly(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%d min", int(d.Minutes()))
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}
