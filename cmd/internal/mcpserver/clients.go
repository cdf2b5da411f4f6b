package mcpserver

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/agent"
)

// kind tells clients by what their transport knows of them.
type kind int

const (
	sole      kind = iota // the one client of a connection without HTTP
	connected             // over HTTP, with a session of the protocol
	stateless             // over HTTP, each request on its own
)

func kindOf(c *mcp.ServerSession, extra *mcp.RequestExtra) kind {
	switch {
	case c != nil && c.ID() != "":
		return connected
	case extra == nil: // every request over HTTP has its header there
		return sole
	default:
		return stateless
	}
}

// defaultSession is the session of a client that names none.
const defaultSession = "default"

// place is the session that a call uses.
type place struct {
	name  string // in the host; "": the tool has no session
	shown string // what the client calls it
	begun bool   // it is new, and its name is still to be told
}

// placeOf is the session that a client means by a name, "" when it gives none. The
// error is for a model.
func (s *server) placeOf(c *mcp.ServerSession, extra *mcp.RequestExtra, name string) (place, error) {
	switch kindOf(c, extra) {
	case sole:
		name = cmp.Or(name, defaultSession)
		return place{name: name, shown: name}, nil
	case connected:
		if s.common(name) {
			return place{name: name, shown: name}, nil
		}
		name = cmp.Or(name, defaultSession)
		return place{name: ownPrefix(c) + name, shown: name}, nil
	case stateless:
		switch {
		case name == "":
			handle := chosen(extra)
			if !s.handles.minted(handle) {
				handle = s.handles.mint()
			}
			return place{name: hidden(handle), shown: handle, begun: true}, nil
		case s.handles.minted(name):
			return place{name: hidden(name), shown: name}, nil
		case s.common(name):
			return place{name: name, shown: name}, nil
		}
	}
	return place{}, fmt.Errorf("%.80q is no session that this server has given you, or it is of a server that has ended. Leave session out to begin a new one; the result names it", name)
}

// running is the place of what is done to a session that there is: a client without
// a connection has to name it.
func (s *server) running(c *mcp.ServerSession, extra *mcp.RequestExtra, name string) (place, error) {
	if name == "" && kindOf(c, extra) == stateless {
		return place{}, errors.New("is missing; pass the session that a result has named")
	}
	return s.placeOf(c, extra, name)
}

// whose is the session that a call about checkpoints on disk uses.
func (s *server) whose(req *mcp.CallToolRequest, name string, begin bool) (whose, error) {
	find := s.running
	if begin {
		find = s.placeOf
	}
	at, err := find(req.Session, req.Extra, name)
	if err != nil {
		return whose{}, fmt.Errorf("%s: %w", sessionArgument, err)
	}
	found := whose{name: at.name, shown: at.shown, begun: at.begun}
	if at.name != at.shown {
		found.scope = scopeOf(at.name)
	}
	return found, nil
}

// common reports whether a name means the same session for all clients. The name of
// calls without one never does.
func (s *server) common(name string) bool {
	return s.o.SharedSessions && name != "" && name != defaultSession && !strings.HasPrefix(name, reserved)
}

// ownPrefix begins the names of the sessions that belong to a connection.
func ownPrefix(c *mcp.ServerSession) string { return hidden(c.ID()) + "/" }

// hidden is a name that stands for a secret, where people and logs may see it.
func hidden(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return reserved + handleForm.EncodeToString(sum[:10])
}

var handleForm = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// handles are names of sessions that the server has made: no one can guess one, and
// only the server can make one. They need no table: each proves itself.
type handles struct{ key []byte }

// handleRandom and handleProof are the parts of a handle, in bytes.
const (
	handleRandom = 12
	handleProof  = 8
)

// newHandles makes those of a server, or those that all servers of a secret take.
func newHandles(secret []byte) handles {
	if len(secret) > 0 {
		return handles{key: secret}
	}
	h := handles{key: make([]byte, sha256.Size)}
	_, _ = rand.Read(h.key) // it never fails
	return h
}

func (h handles) mint() string {
	b := make([]byte, handleRandom)
	_, _ = rand.Read(b) // it never fails
	return reserved + handleForm.EncodeToString(append(b, h.proof(b)...))
}

func (h handles) minted(name string) bool {
	text, ok := strings.CutPrefix(name, reserved)
	b, err := handleForm.DecodeString(text)
	// Decoding passes over line feeds and rests: there is one spelling of a handle.
	return ok && err == nil && len(b) == handleRandom+handleProof && handleForm.EncodeToString(b) == text &&
		hmac.Equal(b[handleRandom:], h.proof(b[:handleRandom]))
}

func (h handles) proof(b []byte) []byte {
	m := hmac.New(sha256.New, h.key)
	_, _ = m.Write(b) // it never fails
	return m.Sum(nil)[:handleProof]
}

// takeSession takes the argument session out of the arguments of a call. What it
// cannot read stays as it is: the tool says what is wrong with it. Names are matched
// as encoding/json matches them, so that none is left to the tool.
func takeSession(arguments json.RawMessage) (name string, rest json.RawMessage) {
	var all map[string]json.RawMessage
	if json.Unmarshal(arguments, &all) != nil {
		return "", arguments
	}
	found := false
	for key, value := range all {
		if !strings.EqualFold(key, sessionArgument) {
			continue
		}
		var one *string
		if json.Unmarshal(value, &one) != nil {
			return "", arguments
		}
		if one != nil && (name == "" || key == sessionArgument) {
			name = *one
		}
		found = true
		delete(all, key)
	}
	if !found {
		return "", arguments
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return "", arguments
	}
	return name, rest
}

const sessionArgument = "session"

// takesSession reports whether a tool has the argument session. A tool of the
// launcher may have an input of that name, which is its own.
func takesSession(t agent.Tool) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return t.Launched == "" && json.Unmarshal(t.Schema, &s) == nil && s.Properties[sessionArgument] != nil
}
