package coppice

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// Rungs of Isolation.Level.
const (
	// IsolationOff leaves sessions all rights of the host.
	IsolationOff = "off"
	// IsolationPrivileges is the default: nothing that a session starts gains
	// rights (no_new_privs).
	IsolationPrivileges = "privileges"
	// IsolationLandlock adds rules of the Linux kernel: files by folders, no TCP,
	// no signals to processes outside.
	IsolationLandlock = "landlock"
	// IsolationBubblewrap adds namespaces: a file system, network and IPC of the
	// sessions' own. It needs the program bwrap.
	IsolationBubblewrap = "bubblewrap"
	// IsolationStrongest is the highest rung that the system has.
	IsolationStrongest = "strongest"
)

// Isolation says what sessions of the runner backend are kept from. It holds for
// all sessions of a host alike: they are not protected from one another, and like
// all of this it is no replacement for a virtual machine around code that attacks
// the kernel.
type Isolation struct {
	// Level is a rung. "": IsolationPrivileges. One that is named and that the
	// system does not have is an error of Start.
	Level string
	// Write names folders that sessions may change, from IsolationLandlock on. nil:
	// the working directory of this process. A folder for temporary files is added
	// (TMPDIR). The working directories of sessions have to be under Write or Read.
	Write []string
	// Read names what else sessions may read besides the system's folders and the
	// interpreter's; the user's home is not among them.
	Read []string
	// Network allows network connections.
	Network bool
}

// resolve makes the folders absolute.
func (i Isolation) resolve() (runner.Isolation, error) {
	r := runner.Isolation{Level: i.Level, Network: i.Network}
	if i.Write == nil {
		i.Write = []string{"."}
	}
	for _, list := range []struct{ to, from *[]string }{{&r.Write, &i.Write}, {&r.Read, &i.Read}} {
		for _, p := range *list.from {
			abs, err := filepath.Abs(p)
			if err != nil {
				return r, fmt.Errorf("%w: the folder %q of the isolation: %w", ErrOptions, p, err)
			}
			*list.to = append(*list.to, abs)
		}
	}
	return r, nil
}

// check refuses what cannot be had.
func (i Isolation) check(backend string) error {
	if backend != BackendRunner {
		if i.Level != "" && i.Level != IsolationOff && i.Level != IsolationPrivileges {
			return fmt.Errorf("%w: the gateway backend cannot isolate its kernels (%s was asked for); use the runner backend", ErrOptions, i.Level)
		}
		return nil
	}
	r, err := i.resolve()
	if err != nil {
		return err
	}
	if _, _, err := r.Active(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// Isolation returns the rung that the host's sessions are on, and what it does, in
// words.
func (h *Host) Isolation() (level, description string) {
	if h.runner == nil {
		return IsolationOff, "the host's own rights: the gateway backend does not isolate its kernels"
	}
	r, err := h.o.Isolation.resolve()
	if err == nil {
		level, description, err = r.Active()
	}
	if err != nil {
		return IsolationOff, err.Error() // Start has refused it
	}
	return level, description
}

// Escape is one attempt of code to do what it should not.
type Escape struct {
	// Attempt says what was tried: "write a file outside".
	Attempt string `json:"attempt"`
	// Prevented says that it failed, Promised that the rung says it does.
	Prevented bool `json:"prevented"`
	Promised  bool `json:"promised"`
	// Detail is what the code saw: an exception, or what it got.
	Detail string `json:"detail"`
}

//go:embed isolation_escape.py
var escapeCode string

// TryToEscape runs code in a session of its own that tries to get out of the
// host's isolation, and tells what came of each attempt: harmless things, on
// files, a port and a process that it makes for that. It takes a fraction of a
// second. An attempt that was promised to fail and did not is a reason not to
// trust the isolation on this system.
func (h *Host) TryToEscape(ctx context.Context) (_ []Escape, err error) {
	if h.runner == nil {
		return nil, fmt.Errorf("try to escape: %w: the gateway backend has no isolation", errors.ErrUnsupported)
	}
	outside, err := os.MkdirTemp(h.o.dir, "escape-")
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(h.o.dir, 0o700); err == nil {
			outside, err = os.MkdirTemp(h.o.dir, "escape-")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("try to escape: make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(outside)) }()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("try to escape: open a port: %w", err)
	}
	defer func() { err = errors.Join(err, listener.Close()) }()

	level, _ := h.Isolation()
	r, err := h.o.Isolation.resolve()
	if err != nil {
		return nil, err
	}
	cwd := os.TempDir()
	if level != IsolationOff && level != IsolationPrivileges {
		cwd = r.Write[0]
	}
	aim, err := json.Marshal(map[string]any{"outside": outside, "port": listener.Addr().(*net.TCPAddr).Port, "host": os.Getpid()})
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	const most = 30 * time.Second
	result, err := h.Session(messages.SessionKey{Session: "escape-" + messages.NewID(), Cwd: cwd}).Execute(ctx, Request{
		Cells: []messages.Cell{{Code: "aim = " + pythonText(string(aim)) + "\n" + escapeCode}}, Mode: messages.ModePerCall, Timeout: most,
	})
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	if result.Outcome != messages.OutcomeOK || len(result.JSON) == 0 {
		return nil, fmt.Errorf("try to escape: the code did not run: %s", result.Text)
	}
	var got []Escape
	if err := json.Unmarshal(result.JSON[0], &got); err != nil {
		return nil, fmt.Errorf("try to escape: read what the code tells: %w", err)
	}
	for i := range got {
		got[i].Promised = promised(level, got[i].Attempt, h.o.Isolation.Network)
	}
	return got, nil
}

// promised says whether a rung prevents an attempt.
func promised(level, attempt string, network bool) bool {
	switch {
	case attempt == "gain rights by a setuid program":
		return level != IsolationOff
	case level == IsolationOff || level == IsolationPrivileges:
		return false
	case attempt == "connect to a port of this machine":
		return !network
	default:
		return true
	}
}

// pythonText returns a Python literal for text that is JSON.
func pythonText(s string) string {
	return `"""` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"""`
}
