package estate

// Narrow bounds a log to so many bytes, before it is used.
func (l *Log) Narrow(most int64) { l.most = most }
