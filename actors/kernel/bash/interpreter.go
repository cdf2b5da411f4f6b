package bash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// maxScript is how long a script may be: Linux takes no longer argument.
const maxScript = 100 << 10

// grace is what an interrupted command, and what it has started, have to end. It is less
// than what a kernel actor gives an interrupted cell, so that the interpreter lives on.
var grace = opportunity.Budget{Opportunity: time.Second, Ceiling: 10 * time.Second}

// end asks a command and what it has started to end, and kills them when they do not
// though they had a processor to do so with.
func end(ctx context.Context, p *process.Process) error {
	bound, done := opportunity.Within(ctx, grace, opportunity.Tree(p.Identity()))
	defer done()
	return p.Stop(bound, process.StopOptions{Grace: grace.Ceiling})
}

// Interpreter runs one script at a time.
type Interpreter struct {
	shell, dir string
	env        []string // Execute's own
	owner      *process.Owner

	once sync.Once
	done chan struct{} // closed by Close

	mu      sync.Mutex
	running *process.Process // the script that runs; guarded by mu
	closed  bool             // no other one is started; guarded by mu
	stops   sync.WaitGroup   // attempts to end a script
	asked   bool             // the running script was interrupted; guarded by mu
}

// Info returns the process that runs now.
func (i *Interpreter) Info() kernel.Info {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running == nil {
		return kernel.Info{ID: i.shell}
	}
	return kernel.Info{ID: i.shell, PID: i.running.PID()}
}

// Execute runs one script.
func (i *Interpreter) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	begin := time.Now()
	for _, env := range []map[string]string{r.Env, r.CallEnv} { // a script is a call of its own
		for _, name := range slices.Sorted(maps.Keys(env)) {
			i.env = append(i.env, name+"="+env[name])
		}
	}
	if len(r.Code) > maxScript {
		return refused(fmt.Sprintf("the script is %d bytes long; the limit is %d: write it to a file and run that", len(r.Code), maxScript)), nil
	}
	out, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var failed error // written by the goroutine that reads the output, read after Done
	ring := process.NewRing(process.RingOptions{Size: 1, Tee: func(p []byte) {
		if err := emit(out, messages.Stream{Name: messages.StdoutStream, Text: string(p)}); err != nil && failed == nil {
			failed = err
		}
	}})
	p, err := i.start(r.Code, ring)
	if err != nil {
		return refused(err.Error()), nil
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Stop(context.WithoutCancel(ctx), process.StopOptions{Grace: -1}) // it can only fail when the process is gone
		<-p.Done()
	}
	interrupted := i.ended()
	reply := kernel.CellReply{Interrupted: interrupted, Duration: time.Since(begin)}
	if ctx.Err() != nil {
		return reply, context.Cause(ctx)
	}
	if failed != nil {
		reply.Incomplete = "output is not complete: " + failed.Error()
	}
	code := exitCode(p.Err())
	reply.OK, reply.ExitCode = code == 0 && !interrupted, &code
	return reply, nil
}

// refused is the reply to a script that was not started.
func refused(problem string) kernel.CellReply {
	code := 126
	return kernel.CellReply{Error: &messages.ErrorDetails{Name: "CommandError", Message: problem}, ExitCode: &code}
}

func (i *Interpreter) start(script string, ring *process.Ring) (*process.Process, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil, errors.New("the interpreter is closed")
	}
	p, err := process.Start(process.Options{
		Path: i.shell, Args: []string{"-c", script}, Env: i.env, Dir: i.dir, Stdout: ring, Stderr: ring, Owner: i.owner,
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", i.shell, err)
	}
	i.running, i.asked = p, false
	return p, nil
}

// ended notes that the script is over and returns whether it was interrupted.
func (i *Interpreter) ended() (interrupted bool) {
	i.mu.Lock()
	i.running = nil
	interrupted = i.asked
	i.mu.Unlock()
	i.stops.Wait()
	return interrupted
}

// Interrupt asks the running script and what it started to end, and kills them
// when they do not.
func (i *Interpreter) Interrupt(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if p := i.running; p != nil && !i.asked {
		i.asked = true
		i.stops.Go(func() { _ = end(context.Background(), p) }) // Execute sees its end
	}
	return nil
}

// AnswerInput fails: a script's input is the null device.
func (i *Interpreter) AnswerInput(context.Context, string, messages.InputAnswer) error {
	return errors.New("shell commands do not ask for input")
}

// Ping returns nil until Close.
func (i *Interpreter) Ping(context.Context) error { return i.Err() }

// Subject is the command that runs, and what it has started.
func (i *Interpreter) Subject() opportunity.Subject {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running == nil {
		return opportunity.Unknown{}
	}
	return opportunity.Tree(i.running.Identity())
}

// RSS returns the memory of the shell that runs.
func (i *Interpreter) RSS() int64 {
	pid := i.Info().PID
	if pid == 0 {
		return 0
	}
	n, err := process.RSS(pid)
	if err != nil {
		return 0
	}
	return n
}

// Done is closed by Close.
func (i *Interpreter) Done() <-chan struct{} { return i.done }

var errClosed = errors.New("closed")

// Err returns nil until Close.
func (i *Interpreter) Err() error {
	select {
	case <-i.done:
		return errClosed
	default:
		return nil
	}
}

// Kill ends a running script at once.
func (i *Interpreter) Kill() {
	i.mu.Lock()
	p := i.running
	i.mu.Unlock()
	if p != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Stop(ctx, process.StopOptions{Grace: -1}) // Close tells whether it worked
	}
}

// Close ends a running script, and the interpreter with it.
func (i *Interpreter) Close(ctx context.Context) error {
	i.mu.Lock()
	i.closed = true
	p := i.running
	i.mu.Unlock()
	if p != nil {
		if err := end(ctx, p); err != nil {
			return fmt.Errorf("end the running command: %w", err)
		}
	}
	i.once.Do(func() { close(i.done) })
	return nil
}

// exitCode is the status that a shell would report.
func exitCode(err error) int {
	var exit *process.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 1
	case exit.Signal != 0:
		return 128 + exit.Signal
	default:
		return exit.Code
	}
}

var (
	_ kernel.Interpreter = (*Interpreter)(nil)
	_ kernel.Killer      = (*Interpreter)(nil)
	_ kernel.Witness     = (*Interpreter)(nil)
)
