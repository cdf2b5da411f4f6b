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
	// Workspace is the name of the workspace that the session belongs to, "" for none.
	// Sessions of two workspaces are different, whatever else they share.
	Workspace string `json:"workspace,omitempty"`
	// Kernel is the name of the kernelspec of its kernels, "" for the one that the host has
	// for who names none. Sessions of two kernelspecs are different, whatever else they share.
	Kernel string `json:"kernel,omitempty"`
}

// MaxKernelspec is how long the name of a kernelspec may be, in bytes.
const MaxKernelspec = 128

// IsKernelspec reports whether a text can be the name of a kernelspec, as Jupyter has them: letters,
// digits, -, . and _, at most [MaxKernelspec]; or "".
func IsKernelspec(name string) bool {
	return len(name) <= MaxKernelspec && strings.Trim(name, "-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

var escapeSession = strings.NewReplacer("%", "%25", "@", "%40", "/", "%2F")

// within stands between the name of a workspace and that of a session. No name holds it,
// since each % of one is escaped.
const within = "%3A"

// with stands between the name of a session and that of its kernelspec.
const with = "%3B"

// ID returns session@cwd, the name of the session's kernel in the tree, with the name of
// its workspace and %3A before it, if it has one, and %3B and that of its kernelspec after the
// session's. It is different for different keys: @, / and % in names are escaped as in URLs.
func (k SessionKey) ID() string {
	id := escapeSession.Replace(k.Session)
	if k.Kernel != "" {
		id += with + escapeSession.Replace(k.Kernel)
	}
	id += "@" + k.Cwd
	if k.Workspace != "" {
		id = escapeSession.Replace(k.Workspace) + within + id
	}
	return id
}

// CallID is the name in the tree of a kernel that serves one call alone. No session
// has it, whatever its name: before the @ of a session's id there is no slash.
func (k SessionKey) CallID(exec string) string { return "call/" + exec + "/" + k.ID() }

var unescapeSession = strings.NewReplacer("%25", "%", "%40", "@", "%2F", "/")

// ParseSessionKey is the inverse of [SessionKey.ID]; false: no key has that id.
func ParseSessionKey(id string) (SessionKey, bool) {
	name, cwd, ok := strings.Cut(id, "@")
	key := SessionKey{Cwd: cwd}
	if workspace, session, of := strings.Cut(name, within); of {
		key.Workspace, name = unescapeSession.Replace(workspace), session
	}
	if session, kernel, named := strings.Cut(name, with); named {
		key.Kernel, name = unescapeSession.Replace(kernel), session
	}
	key.Session = unescapeSession.Replace(name)
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

// KeyOfCall is the key of the session that a child of a gateway serves, by its name in the
// tree: one for the session, or for a call alone. False: it is not the name of such a child.
func KeyOfCall(child string) (SessionKey, bool) {
	if rest, ok := strings.CutPrefix(child, "call/"); ok {
		if _, child, ok = strings.Cut(rest, "/"); !ok {
			return SessionKey{}, false
		}
	}
	return ParseSessionKey(child)
}

// String returns the key for people: session@cwd, or the session alone when
// there is no working directory, with its workspace and a colon before it, if it has one, and
// its kernelspec in brackets after the session's name.
func (k SessionKey) String() string {
	if k.Workspace != "" {
		workspace := k.Workspace
		k.Workspace = ""
		return workspace + ":" + k.String()
	}
	if k.Kernel != "" {
		k.Session += "[" + k.Kernel + "]"
	}
	if k.Cwd == "" {
		return k.Session
	}
	return k.Session + "@" + k.Cwd
}
