package httpapi

import "time"

// Retention says which executions that have ended are kept. Those that run always are, and
// so is the one of them that was started last. Its zero value is the default.
type Retention struct {
	// Keep is how many are kept whose end was shown to somebody, and KeepFor for how long. 0:
	// 256, and 24 h. Of those whose end nobody has seen yet, sixteen times as many are.
	Keep    int
	KeepFor time.Duration
	// KeepBytes is how much their events may take together, in bytes, in memory and in
	// files. 0: 1 GiB.
	KeepBytes int64
}

// The defaults of [Retention].
const (
	DefaultKeep      = 256
	DefaultKeepFor   = 24 * time.Hour
	DefaultKeepBytes = 1 << 30
)

func (r Retention) settle() Retention {
	if r.Keep <= 0 {
		r.Keep = DefaultKeep
	}
	if r.KeepFor <= 0 {
		r.KeepFor = DefaultKeepFor
	}
	if r.KeepBytes <= 0 {
		r.KeepBytes = DefaultKeepBytes
	}
	return r
}
