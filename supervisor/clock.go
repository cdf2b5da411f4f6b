package supervisor

import "time"

// instant is a time since a system began, plus one; 0 is never.
type instant int64

// clock is the time as the incarnations and supervisors of a system count it.
type clock struct{ began time.Time }

func (c clock) now() instant { return instant(time.Since(c.began)) + 1 }

// of turns a time into an instant.
func (c clock) of(t time.Time) instant { return instant(t.Sub(c.began)) + 1 }

// at turns an instant back into a time; never is the zero time.
func (c clock) at(i instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return c.began.Add(time.Duration(i - 1))
}

// times does so for several.
func (c clock) times(l []instant) []time.Time {
	if len(l) == 0 {
		return nil
	}
	t := make([]time.Time, len(l))
	for i, at := range l {
		t[i] = c.at(at)
	}
	return t
}
