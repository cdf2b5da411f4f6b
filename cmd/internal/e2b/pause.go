package e2b

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/cmd/internal/e2b/envd"
	"github.com/coppice-run/coppice/messages"
)

const (
	// settleTime is how long a pause waits for requests whose answers are on their way.
	settleTime = 2 * time.Second
	// pauseAgain is after how long a sandbox is paused that could not be at its timeout.
	pauseAgain = time.Minute
	// listed is how many processes and names a refusal lists.
	listed = 5
)

// refusal is what is not done, with the status of the answer.
type refusal struct {
	status int
	why    string
}

// Error returns the reason.
func (e *refusal) Error() string { return e.why }

// What is refused of one that is paused, and of one that is not. Clients take the status
// of the first, when they pause, for "it was paused already".
var (
	errPaused  = &refusal{http.StatusConflict, "the sandbox is paused: connect to it first"}
	errRunning = &refusal{http.StatusConflict, "the sandbox is not paused"}
)

// unable refuses to keep what would lose something.
func unable(why string, args ...any) error {
	return &refusal{http.StatusUnprocessableEntity, fmt.Sprintf(why, args...)}
}

// keepsNone refuses it where sessions are not kept.
var keepsNone = &refusal{http.StatusNotImplemented, "this server does not keep the memory of sandboxes on disk as a whole: start it with --backend runner, on Linux or macOS"}

// saying puts words around the reason of a refusal; another error is as it was.
func saying(before string, err error, after string) error {
	if no, ok := errors.AsType[*refusal](err); ok {
		return &refusal{no.status, before + no.why + after}
	}
	return err
}

// pause serves a request to pause a sandbox.
func (a *API) pause(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Memory *bool `json:"memory"`
	}
	s := a.named(w, r)
	if s == nil || !answer.Body(w, r, maxBody, &o) {
		return
	}
	// A client that leaves does not stop it half way.
	if err := a.sleep(context.WithoutCancel(r.Context()), s, o.Memory == nil || *o.Memory); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// resume serves a request of older clients, who do not connect, to resume a sandbox.
func (a *API) resume(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Timeout *int64 `json:"timeout"`
	}
	s := a.named(w, r)
	if s == nil || !answer.Body(w, r, maxBody, &o) {
		return
	}
	lives, err := lifetime(o.Timeout)
	if err != nil {
		answer.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	resumed, err := a.wake(context.WithoutCancel(r.Context()), s, lives, true)
	if err == nil && !resumed {
		err = errRunning
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer.JSON(w, http.StatusCreated, a.made(r.Context(), s))
}

// sleep pauses a sandbox that runs: with its memory, unless something of that would be
// lost, or without.
func (a *API) sleep(ctx context.Context, s *sandbox, memory bool) error {
	if ok, err := s.rest.take(ctx, false); err != nil {
		return err
	} else if !ok {
		return errPaused
	}
	at, i := time.Now(), s.w.Info()
	err := s.w.SetLifetime(time.Time{}, 0) // its time does not run
	if err != nil {
		s.rest.done(time.Time{})
		return err
	}
	if memory {
		err = saying("the sandbox was not paused: ", a.keep(ctx, s), "; or pause it without its memory, which keeps the files alone")
	} else {
		err = a.drop(ctx, s)
	}
	if err == nil {
		err = s.w.Pin(ctx, true) // another one does not take its place
	}
	if err != nil {
		s.rest.done(time.Time{})
		return errors.Join(err, s.w.SetLifetime(i.EndAt, i.IdleEnd))
	}
	s.rest.idleEnd, s.rest.pinned = i.IdleEnd, i.Pinned
	s.rest.done(at)
	return nil
}

// wake resumes a sandbox that is paused, and reports whether it was.
func (a *API) wake(ctx context.Context, s *sandbox, lives time.Duration, memory bool) (bool, error) {
	if ok, err := s.rest.take(ctx, true); err != nil || !ok {
		return false, err
	}
	paused, err := s.rest.since(), error(nil)
	if !memory {
		err = a.drop(ctx, s)
	}
	if err == nil && !s.rest.pinned {
		err = s.w.Pin(ctx, false)
	}
	if err == nil {
		err = s.setEnd(time.Now().Add(max(lives, leastTimeout)), s.rest.idleEnd)
	}
	if err == nil {
		paused = time.Time{}
	}
	s.rest.done(paused)
	return err == nil, err
}

// keep puts the sessions of a sandbox on disk. When one cannot be kept as a whole, or
// anything else runs in the sandbox, all is as it was: the sessions that were kept before
// come back with their next code.
func (a *API) keep(ctx context.Context, s *sandbox) error {
	if !a.o.Keeps {
		return keepsNone
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	live, err := a.sessions(ctx, s)
	if err != nil {
		return err
	}
	for _, one := range live {
		if names := children(one.PID); len(names) > 0 {
			return unable("code of the context %s has started %s, which cannot be kept; end them", one.Key.Session, some(names))
		}
	}
	for _, one := range live {
		if _, err := a.session(one.Key).Hibernate(ctx); err != nil {
			if err = whyNot(one.Key.Session, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// whyNot is why a context is not kept, nil when there is nothing of it to keep.
func whyNot(name string, err error) error {
	refused, ok := errors.AsType[*messages.HibernateRefused](err)
	if !ok {
		return fmt.Errorf("pause the context %s: %w", name, err)
	}
	switch refused.Reason {
	case messages.HibernateNoKernel:
		return nil
	case messages.HibernateLossy:
		lost := make([]string, len(refused.Lost))
		for i, l := range refused.Lost {
			lost[i] = fmt.Sprintf("%s (%s: %s)", l.Name, l.Type, l.Reason)
		}
		return unable("the context %s would lose %s; delete them", name, some(lost))
	default:
		return unable("the context %s cannot be kept: %s", name, refused.Problem)
	}
}

// some names the first few.
func some(names []string) string {
	text := strings.Join(names[:min(len(names), listed)], ", ")
	if more := len(names) - listed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// settle waits for requests whose answers are on their way, and refuses when code or a
// process runs.
func (s *sandbox) settle(ctx context.Context) error {
	if err := s.idle(); err != nil {
		return err
	}
	settle, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := s.rest.settled(settle, starts); err != nil {
		return unable("code runs in it; wait for its end")
	}
	return s.idle()
}

// idle refuses to keep a sandbox in which processes run.
func (s *sandbox) idle() error {
	var names []string
	for _, p := range s.w.Processes() {
		if _, over := p.Exit(); !over {
			args, _ := envd.Asked(p)
			names = append(names, fmt.Sprintf("%.80q (process %d)", strings.Join(args, " "), p.PID()))
		}
	}
	if len(names) > 0 {
		return unable("%s runs in it, which cannot be kept; end it first", some(names))
	}
	return nil
}

// drop ends what runs in a sandbox and forgets what its sessions have, also what is kept
// of them on disk: the files are what is left.
func (a *API) drop(ctx context.Context, s *sandbox) error {
	for _, p := range s.w.Processes() {
		if _, over := p.Exit(); !over {
			if err := p.Stop(ctx, "the sandbox was paused without its memory", 0); err != nil {
				return err
			}
		}
	}
	live, err := a.sessions(ctx, s)
	if err != nil {
		return err
	}
	kept, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return err
	}
	keys := make([]messages.SessionKey, 0, len(live)+len(kept))
	for _, one := range live {
		keys = append(keys, one.Key)
	}
	for _, one := range kept {
		if one.Key.Workspace == s.w.Name() {
			keys = append(keys, one.Key)
		}
	}
	for _, key := range keys {
		if err := a.session(key).Close(ctx); err != nil {
			return fmt.Errorf("end the context %s: %w", key.Session, err)
		}
	}
	return nil
}

// sessions are those of a sandbox that have a kernel.
func (a *API) sessions(ctx context.Context, s *sandbox) ([]coppice.SessionInfo, error) {
	all, err := a.o.Host.Sessions(ctx)
	var list []coppice.SessionInfo
	for _, one := range all {
		if one.Key.Workspace == s.w.Name() {
			list = append(list, one)
		}
	}
	return list, err
}

// session is the one of a key.
func (a *API) session(key messages.SessionKey) *coppice.Session {
	return a.o.Host.Session(key.Session, coppice.InWorkspace(key.Workspace), coppice.In(key.Cwd), coppice.OnKernel(key.Kernel))
}

// setEnd gives a sandbox another end: the one at which it ends, or is paused.
func (s *sandbox) setEnd(at time.Time, idleEnd time.Duration) error {
	if do, _ := s.rest.does(); do.pause {
		s.rest.pausesAt(at)
		return s.w.SetLifetime(time.Time{}, idleEnd)
	}
	return s.w.SetLifetime(at, idleEnd)
}

// ends is when it ends, or is paused; zero: never.
func (s *sandbox) ends() time.Time {
	if do, at := s.rest.does(); do.pause {
		return at
	}
	return s.w.Info().EndAt
}

// follow pauses a sandbox at its timeout, if it is to be, and returns when it has ended or
// the server closes.
func (a *API) follow(s *sandbox) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		left, armed := s.rest.left()
		timer.Reset(left)
		due := timer.C
		if !armed {
			due = nil
		}
		select {
		case <-s.w.Done():
			return
		case <-a.life.Done():
			return
		case <-s.rest.retime:
		case <-due:
			do, _ := s.rest.does()
			if err := a.sleep(a.life, s, do.memory); err != nil && s.w.Err() == nil && a.life.Err() == nil {
				a.o.Logger.Warn("a sandbox was not paused at its timeout; it goes on, and is paused once it can be", "sandbox", s.w.Name(), "err", err)
				s.rest.pausesAt(time.Now().Add(pauseAgain))
			}
		}
	}
}
