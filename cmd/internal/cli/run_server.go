package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/messages"
)

// server returns the client of the server that a run uses, nil when it uses none.
func (a *app) server(f runFlags) *client.Client {
	if !f.keep || f.own {
		return nil
	}
	c, err := client.Find(client.FindOptions{Env: a.Env, Client: client.Options{Patience: 10 * time.Second}})
	if err != nil {
		if !errors.Is(err, client.ErrNoServer) {
			a.Err.Lines("coppice: the server is not used: " + err.Error())
		}
		return nil
	}
	return c
}

// runOnServer makes the call in a session of the server.
func (a *app) runOnServer(ctx context.Context, c *client.Client, f runFlags, file string, cells []messages.Cell, env map[string]string, timeout time.Duration, starting *console.Progress) error {
	cwd := f.cwd // of a workspace: relative to its folder
	if f.workspace == "" {
		var err error
		if cwd, err = filepath.Abs(f.cwd); err != nil { // "" is this one
			return console.UsageError{Err: err}
		}
	}
	ask := a.Answers(f.stdin, file)
	e := client.Execute{ID: messages.NewID(), Session: f.session, Cwd: cwd, Workspace: f.workspace, Cells: cells, Timeout: timeout.Seconds(), Reset: f.reset, CallEnv: env, AllowStdin: ask != nil}
	if timeout == 0 {
		e.Timeout = coppice.NoTimeout.Seconds() // as here: without --timeout none
	}
	questions := &questioner{c: c, id: e.ID, ask: ask}
	defer questions.wait()
	reads := f.json || f.events
	end := concluded{exec: messages.Execute{ID: e.ID, Key: messages.SessionKey{Session: e.Session, Cwd: e.Cwd}, Cells: cells}, reads: reads}
	result, err := a.writeEvents(ctx, end.of(ctx, questions.of(ctx, c.Run(ctx, e))), coppice.Request{Cells: cells, Timeout: timeout}, f, starting)
	switch {
	case err != nil:
		return console.RunFailure(err)
	case end.err != nil && (reads || result.Outcome == ""): // else it was drawn
		return &console.Exit{Code: console.Lost, Err: end.err}
	}
	if begins(result) && result.Outcome == messages.OutcomeError && !f.reset && !f.json && !f.events {
		a.Err.Lines(fmt.Sprintf("coppice: %q is a new session of the server, in %s", f.session, cmp.Or(cwd, "the folder of "+f.workspace)))
	}
	return console.EndedBy(result)
}

// begins reports whether a call was the first of its session, as far as the server knows: whose code
// fails since it expects variables of earlier ones has another name, folder or server in mind.
func begins(result messages.Result) bool {
	return result.State == messages.StateFresh && result.Variables() == ""
}

// questioner answers the questions of an execution. Its goroutines, one for each
// question, end with the events.
type questioner struct {
	c     *client.Client
	id    string
	ask   coppice.InputHandler // nil: questions are not answered
	joins sync.WaitGroup
}

// wait waits for the goroutines; one that reads a terminal into which no one types is
// left to the end of the process.
func (q *questioner) wait() {
	done := make(chan struct{})
	go func() { // ends with the questions, or with the process
		defer close(done)
		q.joins.Wait()
	}()
	timer := time.NewTimer(console.ShutdownHurry)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// of passes events on, and answers the questions among them.
func (q *questioner) of(ctx context.Context, events iter.Seq2[messages.Event, error]) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for e, err := range events {
			if question, ok := e.(messages.InputRequest); ok && q.ask != nil {
				q.joins.Go(func() { q.answer(ctx, question) })
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// answer gives what the user says; without an answer the code is interrupted,
// since no one else will give one.
func (q *questioner) answer(ctx context.Context, question messages.InputRequest) {
	line, err := q.ask(ctx, question)
	if err == nil {
		_, err = q.c.Answer(ctx, q.id, question.ID, line)
	}
	if err != nil && ctx.Err() == nil {
		_ = q.c.Cancel(ctx, q.id) // the end of the execution tells
	}
}
