package coppice

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/messages"
)

// StartupStage is one step of the start of a host.
type StartupStage struct {
	// Name says what was done: "choose the backend: runner, since ...".
	Name string
	// Since is the time since [Start] was called, at the end of the stage, and Took
	// that since the end of the stage before.
	Since, Took time.Duration
}

// String is the stage as a line.
func (s StartupStage) String() string {
	return fmt.Sprintf("%8.1f ms  %+8.1f ms  %s", ms(s.Since), ms(s.Took), s.Name)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startup tells the stages of a start. A nil one tells nothing. Its methods may be
// called from any goroutine.
type startup struct {
	tell  func(StartupStage)
	began time.Time

	mu   sync.Mutex
	last time.Time // guarded by mu: the end of the stage before
	over bool      // guarded by mu: the first kernel is ready
}

// startup returns who tells the stages, nil when nobody wants to know.
func (r resolved) startup() *startup {
	tell := r.OnStartup
	if tell == nil && home.SwitchedOn(r.Env, "PI_DEBUG_STARTUP") {
		tell = func(s StartupStage) { _, _ = fmt.Fprintln(os.Stderr, r.Brand+" startup:", s) } // for people
	}
	if tell == nil {
		return nil
	}
	now := time.Now()
	return &startup{tell: tell, began: now, last: now}
}

func (s *startup) stage(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stageLocked(name)
}

func (s *startup) stageLocked(name string) {
	if s.over {
		return
	}
	now := time.Now()
	s.tell(StartupStage{Name: name, Since: now.Sub(s.began), Took: now.Sub(s.last)})
	s.last = now
}

// watch returns a listener that tells what becomes of the shared process and of
// the first kernel, and passes everything on.
func (s *startup) watch(next func(messages.Lifecycle)) func(messages.Lifecycle) {
	if s == nil {
		return next
	}
	return func(e messages.Lifecycle) {
		if c, ok := e.(messages.ChildChanged); ok && (c.Kind == "server" || c.Kind == "kernel") {
			s.changed(c)
		}
		if next != nil {
			next(e)
		}
	}
}

func (s *startup) changed(c messages.ChildChanged) {
	s.mu.Lock()
	defer s.mu.Unlock() // also when tell panics
	switch c.To {
	case messages.ChildStarting:
		s.stageLocked(c.Kind + " " + c.Key + " is asked to start")
	case messages.ChildIdle, messages.ChildBusy:
		// A server's actor is up at once; its process is what first calls wait for.
		if c.From == messages.ChildStarting && c.Kind == "kernel" {
			s.stageLocked(c.Kind + " " + c.Key + " is ready")
			s.over = true
		}
	default:
		if c.Exit != nil {
			s.stageLocked(c.Kind + " " + c.Key + " is " + string(c.To) + ": " + firstLine(c.Exit.Reason))
		}
	}
}

// openTrace opens the trace, if there is to be one.
func (h *Host) openTrace() (err error) {
	if h.o.TraceIPC {
		h.trace, err = ipctrace.Open(filepath.Join(h.o.dir, "agent", "trace"))
	}
	return err
}

// TraceFile returns the file in which the messages between this host and its
// kernels are noted, a JSON object a line, with time, kernel, direction, type, id
// and size and nothing of what they say. It is for its owner alone; at 32 MiB it is
// put aside, with .1 at the end of its name, and begun anew. "" without
// [Options.TraceIPC].
func (h *Host) TraceFile() string { return h.trace.Path() }

// firstLine is a text up to its first line break.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
