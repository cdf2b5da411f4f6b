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

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
)

// Options says how to measure.
type Options struct {
	// Python is the interpreter, with ipykernel, jupyter_client,
	// jupyter_kernel_gateway and nbclient. Required.
	Python string
	// Root is the folder of this module, whose Python sources the bare pipe runs.
	// Required for that one.
	Root string
	// Calls is how many round trips are measured. 0: 200.
	Calls int
	// Creates is how many new sessions are measured. 0: 3.
	Creates int
}

func (o Options) withDefaults() Options {
	if o.Calls == 0 {
		o.Calls = 200
	}
	if o.Creates == 0 {
		o.Creates = 3
	}
	return o
}

// Peer is one thing to compare with.
type Peer struct {
	Name string
	// About says what it is, and what it is not.
	About string
	// Floor says that no runtime could be faster, since it does less.
	Floor bool
	run   func(context.Context, Options) (times, error)
}

// times is what a peer took.
type times struct{ create, execute *load.Recorder }

func newTimes() times { return times{load.NewRecorder(), load.NewRecorder()} }

// All lists the peers.
func All() []Peer {
	return []Peer{
		{"bare-pipe", "the runner's own Python process, started plainly, and a client of thirty lines: no supervision, no sinks, no result text, no second caller", true, barePipe},
		{"bare-websocket", "a kernel behind the same Kernel Gateway and a client that waits for reply and idle; the socket as it comes", true, bareWebSocket(false)},
		{"bare-websocket-tuned", "the same, and each read is acknowledged at once, as Coppice does (Linux)", true, bareWebSocket(true)},
		{"jupyter_client", "jupyter_client's blocking client on an ipykernel of its own, over ZeroMQ, without a gateway", false, script("blocking")},
		{"jupyter_client-async", "the same with its asyncio client", false, script("async")},
		{"nbclient", "nbclient runs the cells of a notebook in memory, on an ipykernel of its own", false, script("nbclient")},
		{"python-c", "a new interpreter for each call: nothing stays alive", false, pythonC},
	}
}

// Run measures one peer as the scenario peers.
func (p Peer) Run(ctx context.Context, o Options) (record.Result, error) {
	o = o.withDefaults()
	r := record.Result{Scenario: "peer", Backend: p.Name, Sessions: 1, Round: 1, At: time.Now(), LoadBefore: record.Load(), Curves: map[string]load.Summary{}, Notes: []string{p.About}}
	t, err := p.run(ctx, o)
	r.Took, r.LoadAfter = time.Since(r.At), record.Load()
	if err != nil {
		err = fmt.Errorf("peer %s: %w", p.Name, err)
		r.Error = err.Error()
		return r, err
	}
	for _, m := range []struct {
		name string
		from *load.Recorder
	}{{"create", t.create}, {"exec", t.execute}} {
		s := m.from.Summary()
		if s.Count == 0 {
			continue
		}
		r.Curves[m.name] = s
		r.Metrics = append(r.Metrics,
			record.Metric{Name: m.name + "-p50", Unit: "us", Value: float64(s.P50) / 1e3, Better: record.None},
			record.Metric{Name: m.name + "-p99", Unit: "us", Value: float64(s.P99) / 1e3, Better: record.None})
	}
	return r, nil
}

//go:embed jupyter_peer.py
var jupyterPeer string

// script measures one mode of jupyter_peer.py.
func script(mode string) func(context.Context, Options) (times, error) {
	return func(ctx context.Context, o Options) (times, error) {
		t := newTimes()
		cmd := exec.CommandContext(ctx, o.Python, "-c", jupyterPeer, mode, fmt.Sprint(o.Creates), fmt.Sprint(o.Calls))
		cmd.Env = append(os.Environ(), "PYDEVD_DISABLE_FILE_VALIDATION=1")
		cmd.WaitDelay = 5 * time.Second
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return t, fmt.Errorf("%w: %s", err, tail(errs.String()))
		}
		var told struct {
			Create []float64 `json:"create"`
			Exec   []float64 `json:"exec"`
		}
		if err := json.Unmarshal(out, &told); err != nil {
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
}

// pythonC starts an interpreter for each call.
func pythonC(ctx context.Context, o Options) (times, error) {
	t := newTimes()
	for range min(o.Calls, 50) {
		begin := time.Now()
		out, err := exec.CommandContext(ctx, o.Python, "-c", "print(1+1)").Output()
		if err != nil {
			return t, err
		}
		if strings.TrimSpace(string(out)) != "2" {
			return t, fmt.Errorf("it printed %q", out)
		}
		took := time.Since(begin)
		t.create.Record(took)
		t.execute.Record(took)
	}
	return t, nil
}

// ErrRoot is returned when the module's folder is not found.
var ErrRoot = errors.New("the folder of this module was not found: run it inside a clone")

// Root finds the folder of this module, at dir or above it.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "actors", "internal", "pysrc", "coppice_runner")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ErrRoot
		}
		dir = up
	}
}

func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-500):]
}
