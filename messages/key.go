package messages

import (
	"path/filepath"
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

var escapeSession = strings.NewReplacer("%", "%25", "@", "%40", "/", "%2F")

// ID returns session@cwd, the name of the session's kernel in the tree. It is
// different for different keys: @, / and % in a session's name are escaped as
// in URLs.
func (k SessionKey) ID() string { return escapeSession.Replace(k.Session) + "@" + k.Cwd }

// CallID is the name in the tree of a kernel that serves one call alone. No session
// has it, whatever its name: before the @ of a session's id there is no slash.
func (k SessionKey) CallID(exec string) string { return "call/" + exec + "/" + k.ID() }

var unescapeSession = strings.NewReplacer("%25", "%", "%40", "@", "%2F", "/")

// ParseSessionKey is the inverse of [SessionKey.ID]; false: no key has that id.
func ParseSessionKey(id string) (SessionKey, bool) {
	name, cwd, ok := strings.Cut(id, "@")
	key := SessionKey{Session: unescapeSession.Replace(name), Cwd: cwd}
	return key, ok && key.ID() == id
}

// In returns the key with another working directory; a relative one is relative
// to the key's, and "" changes nothing.
func (k SessionKey) In(cwd string) SessionKey {
	switch {
	case cwd == "":
	case filepath.IsAbs(cwd):
		k.Cwd = cwd
	default:
		k.Cwd = filepath.Join(k.Cwd, cwd)
	}
	return k
}

// String returns the key for people: session@cwd, or the session alone when
// there is no working directory.
func (k SessionKey) String() string {
	if k.Cwd == "" {
		return k.Session
	}
	return k.Session + "@" + k.Cwd
}
