package environment

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/pylit"
	"github.com/coppice-run/coppice/internal/sandbox"
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

// Escaped is what came of the code of [TryToEscape].
type Escaped struct {
	// JSON is the first application/json display of the code.
	JSON []byte
	// Level is the rung that its session is on, as Host.Isolation names it, and
	// Network whether its isolation allows network connections.
	Level   string
	Network bool
}

//go:embed escape.py
var escapeCode string

// TryToEscape runs code in a session that tries to get out of the isolation of its
// host, and reports the outcome of each attempt: harmless things, on files, a port and
// a process that it makes for that. It takes a fraction of a second. An attempt
// that was promised to fail and did not is a reason not to trust the isolation on
// this system.
//
// dir is a folder of this process that the session may not see, such as Host.Dir;
// it is made if need be, and what is put there is removed again. run executes code
// as one cell of a new session of the host; it is called at most once, and has to
// fail when the code did. Its error is wrapped.
func TryToEscape(ctx context.Context, dir string, run func(ctx context.Context, code string) (Escaped, error)) (_ []Escape, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("try to escape: make a folder: %w", err)
	}
	outside, err := os.MkdirTemp(dir, "escape-")
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

	aim, err := json.Marshal(map[string]any{"outside": outside, "port": listener.Addr().(*net.TCPAddr).Port, "host": os.Getpid()})
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	ran, err := run(ctx, "aim = "+pylit.String(string(aim))+"\n"+escapeCode)
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	var got []Escape
	if err := json.Unmarshal(ran.JSON, &got); err != nil {
		return nil, fmt.Errorf("try to escape: read what the code tells: %w", err)
	}
	for i := range got {
		got[i].Promised = promised(ran.Level, got[i].Attempt, ran.Network)
	}
	return got, nil
}

// loose says that a rung leaves sessions the files, the network and the processes
// of the host.
func loose(level string) bool {
	return level == sandbox.Off.String() || level == sandbox.Privileges.String()
}

// promised says whether a rung prevents an attempt.
func promised(level, attempt string, network bool) bool {
	switch {
	case attempt == "gain rights by a setuid program":
		return level != sandbox.Off.String()
	case loose(level):
		return false
	case attempt == "connect to a port of this machine":
		return !network
	default:
		return true
	}
}
