package process

import "time"

// SetStartWait says how long a child of an owner has to become its program.
func SetStartWait(o *Owner, d time.Duration) { o.startWait = d }
