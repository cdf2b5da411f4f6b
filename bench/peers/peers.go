package peers

import (
	"context"
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
	// Extras is the folder of the peers that `make bench-env` installs: python, a
	// virtual environment, and node. "": they are left out.
	Extras string
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
	Floor  bool
	needs  needs
	expect time.Duration
	run    func(context.Context, Options) (times, error)
}

// times is what a peer took.
type times struct{ create, execute *load.Recorder }

func newTimes() times { return times{load.NewRecorder(), load.NewRecorder()} }

// All lists the peers: floors first, then those of the tests' environment, then
// those that `make bench-env` installs.
func All() []Peer {
	return []Peer{
		{"bare-pipe", "the runner's own Python process, started plainly, and a client of thirty lines: no supervision, no sinks, no result text, no second caller", true, inTests, time.Second, barePipe},
		{"bare-websocket", "a kernel behind the same Kernel Gateway and a client that waits for reply and idle; the socket as it comes", true, inTests, 13 * time.Second, bareWebSocket(false)},
		{"bare-websocket-tuned", "the same, and each read is acknowledged at once, as Coppice does (Linux)", true, inTests, 5 * time.Second, bareWebSocket(true)},
		{"jupyter_client", "jupyter_client's blocking client on an ipykernel of its own, over ZeroMQ, without a gateway", false, inTests, 4 * time.Second, script(clientOf("blocking"), 0)},
		{"jupyter_client-async", "the same with its asyncio client", false, inTests, 4 * time.Second, script(clientOf("async"), 0)},
		{"nbclient", "nbclient runs the cells of a notebook in memory, on an ipykernel of its own", false, inTests, 4 * time.Second, script(clientOf("nbclient"), 0)},
		{"python-c", "a new interpreter for each call: nothing stays alive", false, inTests, time.Second, pythonC},
		{"jupyter-kernel-client", "the client under jupyter-mcp-server, on a kernel behind the same Kernel Gateway; one caller, no supervision", false, inPython, 15 * time.Second, behindGateway(pythonOf("jupyter-kernel-client"))},
		{"jupyterlab-services", "JupyterLab's client, in node, on a kernel behind the same Kernel Gateway; reconnects, and supervises nothing", false, inNode, 15 * time.Second, behindGateway(nodeOf("jupyterlab-services"))},
		{"xeus-python", "jupyter_client on a kernel in C++ instead of ipykernel; no gateway", false, inPython, 6 * time.Second, script(pythonOf("xeus-python"), 0)},
		{"ipyparallel", "a controller and one engine, which is an ipykernel without rich displays as they come; made for clusters, a session is an engine", false, inPython, 20 * time.Second, script(pythonOf("ipyparallel"), 0)},
		{"execnet", "a Python process and a channel over its pipes; evaluates what it is sent: no output capture, no interrupt, no result text", false, inPython, 2 * time.Second, script(pythonOf("execnet"), 0)},
		{"rpyc", "a Python process whose objects are called over its pipes; no output capture, no interrupt, no result text", false, inPython, 2 * time.Second, script(pythonOf("rpyc"), 0)},
		{"pexpect", "`python` in a pseudo-terminal, its prompt awaited; text alone, and 50 ms of waiting before each line as it comes", false, inPython, 13 * time.Second, script(pythonOf("pexpect"), 0)},
		{"smolagents", "smolagents' LocalPythonExecutor: walks the syntax tree inside the agent's own process, a part of the language, no kill", false, inPython, 5 * time.Second, script(pythonOf("smolagents"), 0)},
		{"smolagents-jupyter", "the client of smolagents' DockerExecutor, on a kernel behind the same Kernel Gateway, without the container; a connection for each call", false, inPython, 15 * time.Second, behindGateway(pythonOf("smolagents-jupyter"))},
		{"trpc-agent-go", "trpc-agent-go's local code executor: a file and a new interpreter for each block, nothing stays alive", false, inGo, 5 * time.Second, script(goOf, 50)},
		{"agentnb", "a persistent Python session for agents by command line: each call is a process of the client", false, inPython, 20 * time.Second, script(pythonOf("agentnb"), 20)},
		{"pyodide", "CPython as WebAssembly inside node: isolated from the system, no threads, no processes, no packages with other machine code", false, inNode, 10 * time.Second, script(nodeOf("pyodide"), 0)},
	}
}

// needs says where a peer is installed.
type needs int

const (
	inTests  needs = iota // with the interpreter of the tests
	inPython              // in Options.Extras, by pip
	inNode                // there, by npm
	inGo                  // there, built of bench/peers/trpc
)

// Expect is how long Run takes on an idle machine with two processors, about.
func (p Peer) Expect() time.Duration { return p.expect }

// Run measures one peer, as a result of the scenario "peer". The error matches
// ErrLeftOut when the peer is not installed.
func (p Peer) Run(ctx context.Context, o Options) (record.Result, error) {
	o = o.withDefaults()
	r := record.Result{Scenario: "peer", Backend: p.Name, Sessions: 1, Round: 1, At: time.Now(), LoadBefore: record.Load(), Curves: map[string]load.Summary{}, Notes: []string{p.About}}
	err := p.Available(o)
	var t times
	if err == nil {
		t, err = p.run(ctx, o)
	}
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
		if _, err := os.Stat(filepath.Join(dir, "internal", "pysrc", "coppice_runner")); err == nil {
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
