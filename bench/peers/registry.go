package peers

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Scripts of the peers that are not Go programs.
var (
	//go:embed jupyter_peer.py
	jupyterPeer string
	//go:embed registry_peer.py
	registryPeer string
	//go:embed registry_peer.mjs
	registryNode string
)

// ErrLeftOut is matched by Available's error about a peer that is not installed
// here. It says how to install it.
var ErrLeftOut = errors.New("left out")

// Available returns nil when the peer is installed.
func (p Peer) Available(o Options) error {
	switch p.needs {
	case inPython:
		if _, err := os.Stat(o.extraPython()); o.Extras == "" || err != nil {
			return fmt.Errorf("%s is %w: its packages are not installed; `make bench-env` does that", p.Name, ErrLeftOut)
		}
	case inNode:
		if _, err := exec.LookPath("node"); err != nil {
			return fmt.Errorf("%s is %w: there is no node", p.Name, ErrLeftOut)
		}
		if _, err := os.Stat(o.extraNode()); o.Extras == "" || err != nil {
			return fmt.Errorf("%s is %w: its packages are not installed; `make bench-env` does that, with npm", p.Name, ErrLeftOut)
		}
	case inGo:
		if _, err := os.Stat(o.extraGo()); o.Extras == "" || err != nil {
			return fmt.Errorf("%s is %w: it is not built; `make bench-env` does that", p.Name, ErrLeftOut)
		}
	}
	return nil
}

func (o Options) extraPython() string { return filepath.Join(o.Extras, "python", "bin", "python") }

func (o Options) extraNode() string { return filepath.Join(o.Extras, "node", "node_modules") }

func (o Options) extraGo() string { return filepath.Join(o.Extras, "trpc") }

// extra makes a command of a script.
type extra func(Options) (program string, args, env []string)

func pythonOf(mode string) extra {
	return func(o Options) (string, []string, []string) {
		return o.extraPython(), []string{"-c", registryPeer, mode}, nil
	}
}

func nodeOf(mode string) extra {
	return func(o Options) (string, []string, []string) {
		// A module that is given as text has no arguments of its own name.
		return "node", []string{"--input-type=module", "-e", registryNode, "--", mode}, []string{"PEER_MODULES=" + o.extraNode()}
	}
}

func goOf(o Options) (string, []string, []string) {
	return o.extraGo(), nil, []string{"PEER_PYTHON=" + o.Python}
}

func clientOf(mode string) extra {
	return func(o Options) (string, []string, []string) {
		return o.Python, []string{"-c", jupyterPeer, mode}, nil
	}
}

// script measures a peer by a script that prints its times. most bounds the calls,
// 0: Options.Calls.
func script(e extra, most int) func(context.Context, Options) (times, error) {
	return func(ctx context.Context, o Options) (times, error) { return runScript(ctx, o, e, most) }
}

// behindGateway is script with a Kernel Gateway of its own.
func behindGateway(e extra) func(context.Context, Options) (times, error) {
	return func(ctx context.Context, o Options) (t times, err error) {
		g, err := startGateway(ctx, o)
		if err != nil {
			return newTimes(), err
		}
		defer func() { err = errors.Join(err, g.end()) }()
		return runScript(ctx, o, e, 0, "PEER_URL=http://"+g.addr, "PEER_TOKEN="+g.token)
	}
}

func runScript(ctx context.Context, o Options, e extra, most int, env ...string) (times, error) {
	t := newTimes()
	calls := o.Calls
	if most > 0 {
		calls = min(calls, most)
	}
	program, args, more := e(o)
	cmd := exec.CommandContext(ctx, program, append(args, fmt.Sprint(o.Creates), fmt.Sprint(calls))...)
	cmd.Env = append(append(append(os.Environ(), "PYDEVD_DISABLE_FILE_VALIDATION=1"), more...), env...)
	cmd.WaitDelay = 5 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	// What the script starts ends with it: interrupted, it cleans up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	if err != nil {
		return t, fmt.Errorf("%w: %s", err, tail(errs.String()))
	}
	var told struct {
		Create []float64 `json:"create"`
		Exec   []float64 `json:"exec"`
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n") // what else was printed comes before
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &told); err != nil {
		return t, fmt.Errorf("read its times: %w", err)
	}
	for _, s := range told.Create {
		t.create.Record(time.Duration(s * float64(time.Second)))
	}
	for _, s := range told.Exec {
		t.execute.Record(time.Duration(s * float64(time.Second)))
	}
	return t, nil
}
