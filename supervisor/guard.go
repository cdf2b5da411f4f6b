package supervisor

import (
	"errors"
	"runtime/debug"

	"github.com/coppice-run/coppice/messages"
)

// This file is the only place that recovers. All code that is not ours runs
// below one of its functions.

// op is which of the behaviour's functions is called.
type op uint8

const (
	opNew op = iota
	opInit
	opHandle
	opWake // a supervisor's control messages
	opDrop // Dropped of a message
	opTerminate
)

// guarded calls op of the incarnation's behaviour, and returns how it failed;
// nil if it did not. When the goroutine is ended under the call, by
// runtime.Goexit, guarded does not return: its deferred function is the last
// that runs, and ends the incarnation, because the Hollywood mailbox of a
// goroutine that is gone never moves again.
func (c *incarnation) guarded(o op, msg any) (exit *Exit) {
	returned := false
	c.handling.Store(int64(c.sys.now()))
	defer func() {
		if returned {
			c.handling.Store(0)
			return
		}
		v := recover()
		if v == nil {
			c.killed(o, msg)
			return
		}
		c.handling.Store(0)
		exit = &Exit{Kind: messages.ExitPanicked, Panic: v, Stack: debug.Stack(), Msg: msgName(o, msg)}
	}()
	err := c.call(o, msg)
	returned = true
	if err != nil {
		return classify(err, msgName(o, msg))
	}
	return nil
}

// classify makes an Exit of what a behaviour returned. Only an error that is
// an Exit keeps its kind: one that wraps an Exit is about the end of another actor.
func classify(err error, msg string) *Exit {
	if e, ok := err.(Exit); ok { //nolint:errorlint // one that is wrapped is that of another actor
		if e.Msg == "" {
			e.Msg = msg
		}
		if e.Kind == "" {
			e.Kind = messages.ExitFailed
		}
		return &e
	}
	if errors.Is(err, ErrDone) {
		return &Exit{Kind: messages.ExitNormal}
	}
	return &Exit{Kind: messages.ExitFailed, Err: err, Msg: msg}
}

func msgName(o op, msg any) string {
	if o == opHandle {
		return typeName(msg)
	}
	return ""
}

// protect calls a function of the Handler or of the Strategy, which belong to
// the application too, and tells fail what went wrong: a panic or an error. It
// returns whether f returned without error. runtime.Goexit goes on to the guard
// of the incarnation.
func protect(f func() error, fail func(error)) (ok bool) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			fail(Exit{Kind: messages.ExitPanicked, Panic: v, Stack: debug.Stack()})
		}
	}()
	err := f()
	returned = true
	if err != nil {
		fail(err)
	}
	return err == nil
}

// Guarded runs f, which is code of a host, and tells ended how it ended: nil,
// f's error, or an [Exit] of the kind panicked or killed (runtime.Goexit).
// ended is called once, in f's goroutine; after a Goexit it is the last that
// runs there.
func Guarded(f func() error, ended func(error)) {
	var err error
	returned := false
	defer func() {
		if returned {
			return
		}
		exit := Exit{Kind: messages.ExitKilled}
		if v := recover(); v != nil {
			exit = Exit{Kind: messages.ExitPanicked, Panic: v, Stack: debug.Stack()}
		}
		ended(exit)
	}()
	err = f()
	returned = true
	ended(err)
}
