package ndjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/coppice-run/coppice/messages"
)

// The types of requests. PROTOCOL.md describes them.
const (
	TypeInit      = "init"
	TypeExecute   = "execute"
	TypePatch     = "patch"
	TypeReset     = "reset"
	TypeQuit      = "exit"
	TypePing      = "ping"
	TypeInterrupt = "interrupt"
	TypeInput     = "input"
	TypeHost      = "host_result"
	TypeFork      = "fork"
	TypeFreeze    = "freeze"
	TypeThaw      = "thaw"
	TypeSignal    = "signal"
	TypeDrain     = "drain"
	TypeUsed      = "used"
)

// Request is one request to an interpreter or to a fork server. Which fields
// are used depends on Type.
type Request struct {
	Type string `json:"type"`
	// ID numbers the cells of a session from 1.
	ID uint64 `json:"id,omitempty"`
	// N numbers the requests that are answered by number.
	N uint64 `json:"n,omitempty"`

	// init
	Version int    `json:"version,omitempty"`
	Mark    string `json:"mark,omitempty"`
	Raw     bool   `json:"raw,omitempty"`
	Prelude string `json:"prelude,omitempty"`
	// Limits bound what the session uses, by name.
	Limits map[string]int64 `json:"limits,omitempty"`

	// init, patch, execute. A nil value of Env removes the name.
	Cwd string             `json:"cwd,omitempty"`
	Env map[string]*string `json:"env,omitempty"`

	// execute
	Code       *string `json:"code,omitempty"`
	AllowStdin bool    `json:"allow_stdin,omitempty"`
	// CallEnv is set while the cell runs. SameCall says that it is a further cell of the
	// call that the last one belonged to.
	CallEnv  map[string]string `json:"call_env,omitempty"`
	SameCall bool              `json:"same_call,omitempty"`

	// input. No value: there is none, after Idle seconds if that is set, and for
	// Reason.
	Request string  `json:"request,omitempty"`
	Value   *string `json:"value,omitempty"`
	Idle    float64 `json:"idle,omitempty"`
	Reason  string  `json:"reason,omitempty"`

	// signal, drain, used
	PID    int  `json:"pid,omitempty"`
	Signal int  `json:"signal,omitempty"`
	Group  bool `json:"group,omitempty"`

	// fork of a session: also when the copies will lack what runs besides its cells.
	Force bool `json:"force,omitempty"`

	// freeze: names to leave out, whether each of the others is written by itself, and
	// whether nothing is written when something would be lost.
	Names []string `json:"names,omitempty"`
	Apart bool     `json:"apart,omitempty"`
	Whole bool     `json:"whole,omitempty"`

	// thaw: what the file holds.
	Args messages.RawJSON `json:"args,omitempty"`

	// fork. The user that the child becomes; nil: that of its server.
	User *User `json:"user,omitempty"`
}

// User is whom a session runs as.
type User struct {
	// UID is the number of the user and of its group, Shared a group that it is in
	// besides.
	UID    int `json:"uid"`
	Shared int `json:"shared"`
	// Folder is the user's own, for its home and for temporary files.
	Folder string `json:"folder"`
	// Mark is what the session's processes are known by, which only they can give
	// themselves when they are another user's. 0: none.
	Mark uint64 `json:"mark,omitempty"`
}

// ErrRequestTooLong is returned for a request that the interpreter would refuse.
var ErrRequestTooLong = errors.New("the request is too long")

// AppendRequest appends r as one line, with its end.
func AppendRequest(dst []byte, r Request) ([]byte, error) {
	if r.Type == TypeExecute && r.Code != nil && r.Env == nil && len(r.CallEnv) == 0 && r.Cwd == "" {
		return appendExecute(dst, r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return dst, fmt.Errorf("write a %s request: %w", r.Type, err)
	}
	limit := MaxRequest
	switch r.Type {
	case TypePing, TypeInterrupt, TypeInput, TypeHost:
		limit = MaxControl
	}
	if len(data) > limit {
		return dst, tooLong(len(data), limit)
	}
	return append(append(dst, data...), '\n'), nil
}

// appendExecute writes the request that is sent for nearly every cell.
func appendExecute(dst []byte, r Request) ([]byte, error) {
	start := len(dst)
	dst = append(dst, `{"type":"execute","id":`...)
	dst = strconv.AppendUint(dst, r.ID, 10)
	if r.AllowStdin {
		dst = append(dst, `,"allow_stdin":true`...)
	}
	dst = append(dst, `,"code":`...)
	dst, err := appendString(dst, *r.Code)
	if err != nil {
		return dst[:start], fmt.Errorf("write an execute request: %w", err)
	}
	dst = append(dst, '}')
	if n := len(dst) - start; n > MaxRequest {
		return dst[:start], tooLong(n, MaxRequest)
	}
	return append(dst, '\n'), nil
}

// appendString appends s as JSON. Code is ASCII nearly always, which needs no more
// than a look at each byte.
func appendString(dst []byte, s string) ([]byte, error) {
	start := len(dst)
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x80:
			data, err := json.Marshal(s)
			return append(dst[:start], data...), err
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"'), nil
}

func tooLong(n, limit int) error {
	return fmt.Errorf("%w: it has %d bytes, and %d is the most", ErrRequestTooLong, n, limit)
}

// EnvPatch returns the env of a request that sets every name of env.
func EnvPatch(env map[string]string) map[string]*string {
	if len(env) == 0 {
		return nil
	}
	patch := make(map[string]*string, len(env))
	for name, value := range env {
		patch[name] = &value
	}
	return patch
}
