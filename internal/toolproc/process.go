package toolproc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// Process is a tool that runs. The zero value is of no use; see [Start].
type Process struct {
	o      Options
	env    toolspec.Env
	port   int
	token  string
	proc   *process.Process
	stderr *process.Ring
	oom    oomCount
	client *http.Client
	drift  []toolspec.Problem
	// driftErr says why the schemas were not compared, nil when they were.
	driftErr error
	took     time.Duration
	// owner is the tool's alone: with it ends whatever the tool has started.
	owner process.Owner
	swept sync.Once
}

// Start starts a tool and returns when it is up. ctx bounds the start alone. A
// port that another program took in the meantime is tried once more with another one.
func Start(ctx context.Context, o Options) (*Process, error) {
	o = o.withDefaults()
	p, err := startOnce(ctx, o)
	if failed, ok := errors.AsType[*StartError](err); ok && failed.portTaken() {
		p, err = startOnce(ctx, o)
	}
	return p, err
}

func startOnce(ctx context.Context, o Options) (*Process, error) {
	began := time.Now()
	p := &Process{o: o, token: newToken()}
	fail := func(kind messages.ToolErrorKind, hint string, err error) error {
		return &StartError{Tool: o.Tool.ID, Kind: kind, Hint: hint, Err: err, Tail: p.Stderr()}
	}
	python, there := toolspec.Python(o.Dir)
	if !there {
		return nil, fail(messages.ToolErrorVenv, "make it with: coppice tool setup "+o.Tool.ID, fmt.Errorf("there is no interpreter at %s", python))
	}
	var err error
	if p.env, err = toolspec.Environment(ctx, o.Tool, o.Dir, o.Env, o.ours(p.token)); err != nil {
		return nil, fail(messages.ToolErrorSecret, "mend the file "+filepath.Join(o.Dir, toolspec.EnvFile), err)
	}
	if len(p.env.Missing) > 0 && !o.Validate {
		return nil, fail(messages.ToolErrorSecret, "set it in "+filepath.Join(o.Dir, toolspec.EnvFile),
			fmt.Errorf("the secret %s is required and not set", strings.Join(p.env.Missing, ", ")))
	}
	if p.port, err = thePorts.free(ctx); err != nil {
		return nil, fail(messages.ToolErrorSpawn, "", err)
	}
	p.stderr = process.NewRing(process.RingOptions{})
	p.owner.Use(python)
	p.proc, err = process.Start(process.Options{
		Path: python, Args: []string{o.Tool.Entrypoint, "--port", strconv.Itoa(p.port)}, Env: p.env.Vars, Dir: o.Dir,
		Stderr: p.stderr, Owner: &p.owner, AddressSpace: o.memoryBytes(), MaxFiles: o.openFiles(),
	})
	if err != nil {
		return nil, fail(messages.ToolErrorSpawn, "", errors.Join(err, p.owner.Close(context.WithoutCancel(ctx))))
	}
	p.oom = countOOM(p.proc.PID())
	p.client = newClient()
	bound, done := opportunity.Within(ctx, opportunity.Starting(o.StartTimeout, 0), opportunity.Tree(p.proc.Identity()))
	err = p.awaitHealth(bound, began)
	done()
	if err != nil {
		_ = p.stop(context.WithoutCancel(ctx), failedGrace) // what failed is the news
		return nil, fail(messages.ToolErrorSpawn, p.startHint(err), err)
	}
	p.drift, p.driftErr = p.compareSchema(ctx)
	p.took = time.Since(began)
	return p, nil
}

// newClient is a client of one tool: no proxy, no connection shared with another tool or
// left behind. A redirect would take the token elsewhere.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, DisableCompression: true,
			MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sweepMost bounds the end of what a tool has left.
const sweepMost = 5 * time.Second

// failedGrace is what a process that did not come up gets between TERM and
// KILL.
const failedGrace = time.Second

// ours are the variables that every tool gets.
func (o Options) ours(token string) []string {
	vars := []string{
		"PYTHONUNBUFFERED=1", toolspec.VarToolID + "=" + o.Tool.ID, toolspec.VarToken + "=" + token,
		// Each arena of the C library maps 64 MiB at once, which counts in the
		// limit of the address space though nothing is in it.
		"MALLOC_ARENA_MAX=2",
	}
	if o.Cache != "" {
		// One for all tools: Python keeps the paths apart, and what several tools
		// import, such as the standard library, is compiled once.
		vars = append(vars, "PYTHONPYCACHEPREFIX="+filepath.Join(o.Cache, "pyc"))
	} else {
		vars = append(vars, "PYTHONDONTWRITEBYTECODE=1")
	}
	if o.Artifacts != "" {
		vars = append(vars, toolspec.VarArtifacts+"="+o.Artifacts)
	}
	if o.Validate {
		vars = append(vars, toolspec.VarValidate+"=true")
	}
	return vars
}

func newToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

// PID and Port are those of the process.
func (p *Process) PID() int { return p.proc.PID() }

// Port is the port that the tool listens on.
func (p *Process) Port() int { return p.port }

// Took is how long the start took.
func (p *Process) Took() time.Duration { return p.took }

// Drift returns where the process describes itself otherwise than tool.json,
// or why that is not known.
func (p *Process) Drift() []string {
	if p.driftErr != nil {
		return []string{p.driftErr.Error()}
	}
	return toolspec.Lines(p.drift, maxDiffs)
}

// Ignored are the names in the tool's .env file that are reserved.
func (p *Process) Ignored() []string { return p.env.Ignored }

// MissingSecrets are the secrets that the tool requires and that are not set; a
// tool that is only validated starts without them.
func (p *Process) MissingSecrets() []string { return p.env.Missing }

// Done is closed when the process has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.proc.Done() }

// Exit says how the process ended: "exited with code 3".
func (p *Process) Exit() string {
	if err := p.proc.Err(); err != nil {
		return err.Error()
	}
	return "exited with code 0"
}

// Stderr is the end of what the process wrote to standard error, at most
// 64 KiB, with its secrets masked.
func (p *Process) Stderr() string {
	if p.stderr == nil {
		return ""
	}
	return p.env.Mask(strings.ToValidUTF8(p.stderr.String(), "\ufffd"))
}

// Memory is the resident memory of the process and of what it started, in
// bytes; 0 where that cannot be found out.
func (p *Process) Memory() int64 {
	total, err := process.RSS(p.proc.PID())
	if err != nil {
		return 0
	}
	children, err := process.Descendants(p.proc.Identity())
	if err != nil {
		return total
	}
	for _, c := range children {
		if rss, err := process.RSS(c.PID); err == nil {
			total += rss
		}
	}
	return total
}

// Stop ends the process and its group: TERM, grace, KILL, and on Linux then what it has
// started in other sessions. It returns when the process was reaped. A negative grace
// kills at once.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error { return p.stop(ctx, grace) }

func (p *Process) stop(ctx context.Context, grace time.Duration) error {
	defer p.client.CloseIdleConnections()
	started, _ := process.Descendants(p.proc.Identity()) // of one that has ended none are known
	err := p.proc.Stop(ctx, process.StopOptions{Grace: grace})
	if err != nil {
		return fmt.Errorf("stop the tool %s: %w", p.o.Tool.ID, err)
	}
	p.swept.Do(func() {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepMost)
		defer cancel()
		process.KillAll(c, started) // what an owner ends, and no one else where there is none
		err = p.owner.Close(c)
	})
	if err != nil {
		return fmt.Errorf("stop the tool %s: %w", p.o.Tool.ID, err)
	}
	return nil
}
