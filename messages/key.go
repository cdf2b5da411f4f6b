package messages

import (
	"strconv"
	"strings"
)

// SessionKey names one interpreter state. Two calls with the same key see the
// same variables; calls with different keys share nothing. The zero Session is
// a valid name.
type SessionKey struct {
	// Session is the caller's name for the session.
	Session string `json:"session"`
	// Cwd is the working directory of the session, absolute.
	Cwd string `json:"cwd"`
}

// String returns the key in the form that child names, logs and drawings use:
// session@cwd. It is for people; [SessionKey.ID] is the unambiguous form.
func (k SessionKey) String() string {
	if k.Cwd == "" {
		return k.Session
	}
	return k.Session + "@" + k.Cwd
}

// ID returns a form that is different for different keys: the session's length
// is part of it, so that no separator in a name can make two keys collide.
func (k SessionKey) ID() string {
	var b strings.Builder
	b.Grow(len(k.Session) + len(k.Cwd) + 8)
	b.WriteString(strconv.Itoa(len(k.Session)))
	b.WriteByte(':')
	b.WriteString(k.Session)
	b.WriteByte('@')
	b.WriteString(k.Cwd)
	return b.String()
}
