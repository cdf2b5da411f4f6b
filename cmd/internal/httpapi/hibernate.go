package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// hibernated lists the sessions that are kept on disk and are not among those that have a
// kernel.
func (a *API) hibernated(ctx context.Context, live []client.Session) ([]client.Session, error) {
	list, err := a.o.Host.Hibernated(ctx)
	if err != nil {
		return nil, err
	}
	a.asleep.note(len(list))
	up := make(map[messages.SessionKey]bool, len(live))
	for _, s := range live {
		up[messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Workspace: s.Workspace}] = true
	}
	var kept []client.Session
	for _, one := range list {
		if !up[one.Key] {
			kept = append(kept, sleeping(one))
		}
	}
	return kept, nil
}

// sleeping is a session that is kept on disk, as clients see it.
func sleeping(one hibernate.Asleep) client.Session {
	owner := ""
	if len(one.Owners) == 1 {
		owner = one.Owners[0]
	}
	return client.Session{
		Session: one.Key.Session, Cwd: one.Key.Cwd, Workspace: one.Key.Workspace, State: client.StateHibernated, Owner: owner,
		Since: one.Made, Expires: one.Expires, Kept: &client.Hibernated{Memory: listed(one.Memory), Bytes: one.Bytes},
	}
}

// listed is what is kept with a list in it, which null is not.
func listed(m messages.Memory) messages.Memory {
	if m.Kept == nil {
		m.Kept = []string{}
	}
	return m
}

// known returns a session that has a kernel, or else is kept on disk.
func (a *API) known(ctx context.Context, key messages.SessionKey) (client.Session, error) {
	s, err := a.find(ctx, key)
	if !errors.Is(err, errNotFound) {
		return s, err
	}
	list, failed := a.hibernated(ctx, nil)
	if failed != nil {
		return s, failed
	}
	for _, one := range list {
		if one.Session == key.Session && one.Cwd == key.Cwd && one.Workspace == key.Workspace {
			return one, nil
		}
	}
	return s, err
}

// hibernate keeps a session on disk and ends its kernel. For one that is there already it
// says what is kept.
func (a *API) hibernate(w http.ResponseWriter, r *http.Request) {
	session, s, err := a.named(r, a.known)
	if err != nil {
		a.problem(w, err)
		return
	}
	if s.Kept != nil {
		httpserver.JSON(w, http.StatusOK, s.Kept)
		return
	}
	report, err := session.Hibernate(r.Context())
	if err != nil {
		a.problem(w, err)
		return
	}
	a.asleep.forget()
	httpserver.JSON(w, http.StatusOK, client.Hibernated{Memory: listed(report.Memory), Bytes: report.Bytes, TookSeconds: report.Took.Seconds()})
}

// countFor is how long a count of sleeping sessions stands: each of them is read for one.
const countFor = 5 * time.Second

// count is how many sessions are kept on disk.
type count struct {
	mu sync.Mutex
	n  int       // guarded by mu
	at time.Time // of the count; zero: it is not known; guarded by mu
}

func (c *count) note(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.at = n, time.Now()
}

func (c *count) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

func (c *count) recent() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, !c.at.IsZero() && time.Since(c.at) < countFor
}

// Hibernated is how many sessions are kept on disk, or were up to 5 s ago. Where they
// cannot be counted it is what was counted last, and the log has why. Any goroutine may
// call it.
func (a *API) Hibernated(ctx context.Context) int {
	n, ok := a.asleep.recent()
	if ok {
		return n
	}
	list, err := a.o.Host.Hibernated(ctx)
	switch {
	case err == nil:
		n = len(list)
	case ctx.Err() != nil: // whoever asked has gone
		return n
	default:
		a.o.Logger.Warn("the sessions on disk could not be counted", "err", err)
	}
	a.asleep.note(n)
	return n
}

// all says whether a request wants the sessions that are kept on disk, too.
func all(r *http.Request) (bool, error) {
	values, given := r.URL.Query()["hibernated"]
	switch {
	case !given:
		return false, nil
	case len(values) == 1 && (values[0] == "true" || values[0] == "false"):
		return values[0] == "true", nil
	}
	return false, badRequest{fmt.Sprintf("hibernated must be true or false, not %.40q", values), ""}
}

// look finds the session that a request names.
type look func(context.Context, messages.SessionKey) (client.Session, error)
