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
	"slices"

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
	// Own says that what was done was done to a kernel that is the sandbox's alone, on the
	// rung gvisor: it reaches nothing else, and is neither promised to fail nor an escape.
	Own bool `json:"own,omitempty"`
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
// host, and reports the outcome of each attempt: on files, sockets and memory that are
// made for that, and on this process, of which it sets what is set already. It takes a
// fraction of a second. An attempt that was promised to fail and did not is a reason not
// to trust the isolation on this system. [Walls] lists the attempts.
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
	aim, withdraw, err := aims(ctx, outside)
	defer func() { err = errors.Join(err, withdraw()) }()
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	text, err := json.Marshal(aim)
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	ran, err := run(ctx, "aim = "+pylit.String(string(text))+"\n"+escapeCode)
	if err != nil {
		return nil, fmt.Errorf("try to escape: %w", err)
	}
	var got []Escape
	if err := json.Unmarshal(ran.JSON, &got); err != nil {
		return nil, fmt.Errorf("try to escape: read what the code tells: %w", err)
	}
	for i := range got {
		got[i].Promised, got[i].Own = promised(ran.Level, got[i].Attempt, ran.Network)
	}
	return got, nil
}

// promised says whether a rung prevents an attempt, and whether it leads to a kernel of its
// own there.
func promised(level, attempt string, network bool) (prevented, own bool) {
	rung, known := sandbox.Named(level)
	for _, w := range Walls() {
		if w.Attempt == attempt {
			return known && w.holds(rung, network), w.Own && rung == sandbox.GVisor
		}
	}
	return false, false
}

// aims makes what the attempts are on, in a folder, and returns how they find it.
// withdraw, which is never nil, removes what is elsewhere.
func aims(ctx context.Context, outside string) (aim map[string]any, withdraw func() error, err error) {
	var undo []func() error
	back := func() error {
		var err error
		for _, f := range slices.Backward(undo) {
			err = errors.Join(err, f())
		}
		return err
	}
	for _, name := range []string{"secret", "spare", "other"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte("secret"), 0o600); err != nil {
			return nil, back, fmt.Errorf("write a file: %w", err)
		}
	}
	var lc net.ListenConfig
	port, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, back, fmt.Errorf("open a port: %w", err)
	}
	undo = append(undo, port.Close)
	datagrams, err := lc.ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		return nil, back, fmt.Errorf("open a port: %w", err)
	}
	undo = append(undo, datagrams.Close)
	aim = map[string]any{
		"outside": outside, "host": os.Getpid(),
		"port": port.Addr().(*net.TCPAddr).Port, "udp": datagrams.LocalAddr().(*net.UDPAddr).Port,
	}
	aim["closed"] = closed()
	more, err := aimsHere(ctx, outside, aim)
	return aim, func() error { return errors.Join(more(), back()) }, err
}

// closed is a file of the system that others than its owner may not read, "" where none is
// known.
func closed() string {
	const others = 0o004
	for _, path := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/.pwd.lock"} {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Mode()&others == 0 {
			return path
		}
	}
	return ""
}

// loose says that a rung leaves sessions the files, the network and the processes
// of the host.
func loose(level string) bool {
	l, _ := sandbox.Named(level)
	return l < sandbox.Landlock
}
