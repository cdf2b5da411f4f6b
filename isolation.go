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

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
)

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
	if _, ok := can[kernel.Isolator](h); !ok {
		return nil, fmt.Errorf("try to escape: %w: %s", errors.ErrUnsupported, h.cannot("has no isolation"))
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
	cwd := os.TempDir()
	if level != IsolationOff && level != IsolationPrivileges {
		cwd = "."
		if len(h.o.Isolation.Write) > 0 {
			cwd = h.o.Isolation.Write[0]
		}
	}
	aim, err := json.Marshal(map[string]any{"outside": outside, "port": listener.Addr().(*net.TCPAddr).Port, "host": os.Getpid()})
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	const most = 30 * time.Second
	result, err := h.Session("escape-"+messages.NewID(), In(cwd)).Execute(ctx, Request{
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
