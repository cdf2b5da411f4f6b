package coppice

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
)

// Request is one call.
type Request struct {
	// ID names the call in results and events, in logs, and for a host that continues it
	// ([Options.KeepSessions]). No other waiting or running call of the host may have it. It has
	// at most 128 letters, digits, - and _. "": a new one is made.
	ID string
	// Cells run in order. The first one that does not complete ends the call.
	Cells []messages.Cell
	// Timeout is the active time of the call: waiting for earlier calls, and running, but not
	// starting a kernel, waiting for input, or waiting for host functions that pause. 0:
	// Options.Timeout; NoTimeout: none.
	Timeout time.Duration
	// Reset starts a new kernel before the first cell. While another call's reset is under way,
	// the call is refused (messages.RefusedResetting).
	Reset bool
	// ResetNames removes what earlier calls have defined before the first cell, in the same
	// kernel. The working directory, the environment and replaced builtins are as when the kernel
	// started. Imported modules and threads stay.
	ResetNames bool
	// Mode overrides Options.KernelMode.
	Mode messages.KernelMode
	// Env is set in os.environ before the first cell, and stays.
	Env map[string]string
	// CallEnv is set in os.environ, on top of Env, while the cells of the call run, and undone
	// after each of them, even if it raised or was interrupted. Whatever the cell did to these
	// variables, each then has the value it had before the call, or is unset. A later cell of the
	// call sees what an earlier one has left in them. Other variables that the code sets stay.
	// Processes that the code has started keep their environment, and threads that are still
	// running see that of the session. Kernels of other languages do not get CallEnv, and a
	// notice says so. Values are never logged.
	CallEnv map[string]string
	// AllowStdin lets input() and getpass wait for Session.SubmitInput. It is for Session.Stream,
	// whose messages.InputRequest events carry the id to answer. Without it, and without Input,
	// reading from stdin fails the cell, and the result says StdinRequested.
	AllowStdin bool
	// Input answers the code's questions. Session.SubmitInput may answer them too; the first
	// answer counts. nil: only they do.
	Input InputHandler
	// InputTimeout is how long each question waits before input() raises a TimeoutError in the
	// code. 0: Options.InputTimeout.
	InputTimeout time.Duration
	// HostFunctions are offered to this call in addition to those of the Options. One with the
	// same name replaces it.
	HostFunctions []HostFunction
	// Count numbers the cells as a notebook does, and keeps them in In and Out. On the gateway
	// backend this has a cost: one history file for all kernels.
	Count bool
	// Comms asks for the messages that widgets and the like send to a frontend: messages.Comm
	// events.
	Comms bool
	// Tokens gives the text of this call the form of OutputOptions.Tokens: at most this many
	// tokens from the beginning. 0: as the host's options say.
	Tokens int
	// Memory is the key of the conversation that the call belongs to, for runtime.selfref. "":
	// that of the fork whose session this is, else the only one there is.
	Memory string
	// Owner is the agent or tenant that makes the call. A session belongs to all owners of its
	// calls, see Host.ReleaseOwner; it counts against the quota of the first, see
	// Options.MaxPerOwner.
	Owner string
	// OnQueued is called once, when the call has its place among those of the session: calls made
	// after that come later. It is not called for a request that could not be made. It must not
	// block. nil: it is not called.
	OnQueued func()

	introspect *messages.Introspect
}

// check refuses what no kernel should see.
func (r Request) check() error {
	if strings.Trim(r.ID, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || len(r.ID) > 128 {
		return &RequestError{"id", fmt.Sprintf("%.80q cannot name a call; use letters, digits, - and _, at most 128", r.ID)}
	}
	if r.Timeout < 0 && r.Timeout != NoTimeout {
		return &RequestError{"timeout", fmt.Sprintf("the timeout %v is negative; use coppice.NoTimeout for none", r.Timeout)}
	}
	if r.InputTimeout < 0 {
		return &RequestError{"input_timeout", fmt.Sprintf("the input timeout %v is negative; use 0 for that of the host", r.InputTimeout)}
	}
	if r.Tokens < 0 {
		return &RequestError{"tokens", fmt.Sprintf("the limit of %d tokens is negative; use 0 for the shape of the host's options", r.Tokens)}
	}
	if err := hostcall.Check(r.HostFunctions); err != nil {
		return &RequestError{"host_functions", err.Error()}
	}
	switch r.Mode {
	case "", messages.ModeSession, messages.ModePerCall:
	default:
		return &RequestError{"mode", fmt.Sprintf("the kernel mode %q is not one of session, per-call", r.Mode)}
	}
	for i, c := range r.Cells {
		if !utf8.ValidString(c.Code) {
			return &RequestError{"cells", fmt.Sprintf("cell %d is not valid UTF-8; Python source must be text", i+1)}
		}
	}
	if err := checkEnv("env", r.Env); err != nil {
		return err
	}
	return checkEnv("call_env", r.CallEnv)
}

// checkEnv refuses variables that no process can have.
func checkEnv(field string, env map[string]string) error {
	for k, v := range env {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return &RequestError{field, fmt.Sprintf("the environment variable %q is not text", k)}
		}
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return &RequestError{field, fmt.Sprintf("the environment variable %q cannot be set: a name is not empty and has no equals sign, and neither it nor the value has a zero byte", k)}
		}
	}
	return nil
}
