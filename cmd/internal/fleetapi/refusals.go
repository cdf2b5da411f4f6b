package fleetapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
)

// The headers of a fleet. In a request, the first names the node that shall serve it, and
// the second the epoch that the client has seen the session in; in an answer they say who
// served it, in which epoch.
const (
	HeaderNode  = "Coppice-Node"
	HeaderEpoch = httpserver.HeaderEpoch
)

// Refusal is an answer that says no.
func Refusal(status int, code, message, hint string, retry time.Duration) *httpserver.Refusal {
	return &httpserver.Refusal{Status: status, Problem: httpserver.Problem{Code: code, Message: message, Hint: hint}, Retry: retry}
}

// refused is the answer for what kept a request from being served here.
func (n *Node) refused(err error) *httpserver.Refusal {
	no, is := errors.AsType[*httpserver.Refusal](err)
	full, isQuota := errors.AsType[*fleet.QuotaError](err)
	other, isEpoch := errors.AsType[*fleet.EpochError](err)
	switch {
	case is:
		return no
	case isEpoch:
		return gone(other.Meant, other.Now, remains{})
	case isQuota:
		return Refusal(http.StatusServiceUnavailable, "quota",
			fmt.Sprintf("there are %d sessions and workspaces in the fleet, as many as there may be: nothing was begun", full.Most), "end one that is not needed, or send it again when one has ended", n.o.TTL/4)
	case errors.Is(err, fleet.ErrBegun):
		return Refusal(http.StatusConflict, "begun", err.Error(), "ask for its result: GET /api/executions/ID", 0)
	case errors.Is(err, fleet.ErrLost):
		return Refusal(http.StatusGone, "lost", "whether it was done is not known: "+err.Error(), "look at what it should have done before it is sent again", 0)
	case errors.Is(err, fleet.ErrDraining):
		return n.leaving()
	default:
		return Refusal(http.StatusServiceUnavailable, "suspended", "nothing was begun"+untouched(err), "send it again when the directory of the fleet can be reached: GET /readyz, or coppice health --ready, says when", n.o.TTL/4)
	}
}

// untouched says why a node may not act, and what is known of its sessions then.
func untouched(err error) string {
	switch {
	case errors.Is(err, fleet.ErrOver):
		return fmt.Sprintf(", and the sessions of this node have ended, or do now: %v", err)
	case errors.Is(err, fleet.ErrSuspended): // others may have declared it dead since
		return fmt.Sprintf(", and whether the sessions of this node still live is not known until the directory of the fleet says so: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		// What was asked of the directory is its own matter, and says nothing to the caller.
		return ", and no session is ended for it: the directory of the fleet gives no answer; one of its servers may stand still, or not be reached"
	default:
		return fmt.Sprintf(", and no session is ended for it: the directory of the fleet cannot be used: %v", err)
	}
}

// gone is the answer to who went on with an epoch that is over, with what is left of what the session
// had.
func gone(meant, now uint64, left remains) *httpserver.Refusal {
	if meant > now {
		return Refusal(http.StatusConflict, "epoch_gone", fmt.Sprintf("the session was never in epoch %d: it is in epoch %d", meant, now), "send the epoch that an answer about the session has said", 0)
	}
	with := "without it"
	if left.kept {
		with = "with that"
	}
	r := Refusal(http.StatusConflict, "epoch_gone", became(meant, now, left), fmt.Sprintf("nothing was begun; to go on %s, send %s: %d", with, HeaderEpoch, now), 0)
	r.Epoch = now
	return r
}

// became says what became of a session since an epoch.
func became(since, now uint64, left remains) string {
	if left.kept {
		return fmt.Sprintf("the session is in epoch %d, with what was kept of it on disk: whatever was begun in epoch %d and not answered is lost", now, since)
	}
	return fmt.Sprintf("the session is in epoch %d: what it had in memory in epoch %d is gone, and whatever was begun then and not answered is lost", now, since) + left.older()
}

// needed is the answer to who has not said which epoch they know, where code may have run
// in an earlier one.
func needed(own *fleet.Ownership, left remains) *httpserver.Refusal {
	r := Refusal(http.StatusConflict, "epoch_needed", became(own.Used(), own.Epoch(), left),
		fmt.Sprintf("nothing was begun; if this is no repetition, send it with %s: %d", HeaderEpoch, own.Epoch()), 0)
	r.Epoch = own.Epoch()
	return r
}

// away is the answer while an owner that is not known to be dead cannot be asked.
func (n *Node) away(id string, why error) *httpserver.Refusal {
	return Refusal(http.StatusServiceUnavailable, "owner_away",
		fmt.Sprintf("the session's node %s does not answer, and is not known to be dead: %v", id, why), "send it again: a node that is dead is known to be within little more than "+n.o.TTL.String(), n.o.TTL/4)
}

// Lost is the answer about what was at a node that is dead.
func Lost(what, id string) *httpserver.Refusal {
	return Refusal(http.StatusGone, "lost", fmt.Sprintf("%s is lost: node %s, which had it, is dead or has left", what, id), "the next call of the session begins with nothing in memory", 0)
}

// refusing is the key under which a context has how its request is refused, in another form.
type refusing struct{}

// refuse answers no, and counts it. Who has gone hears nothing.
func (n *Node) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	Refuse(ctx, w, n.refused(err), n.counts.refused)
}

// Refuse answers no, and counts it. Who has gone hears nothing.
func Refuse(ctx context.Context, w http.ResponseWriter, no *httpserver.Refusal, refused *prometheus.CounterVec) {
	if ctx.Err() != nil {
		return
	}
	refused.WithLabelValues(no.Code).Inc()
	if no.Epoch != 0 {
		w.Header().Set(HeaderEpoch, strconv.FormatUint(no.Epoch, 10))
	}
	if answer, in := ctx.Value(refusing{}).(func(http.ResponseWriter, *httpserver.Refusal)); in {
		answer(w, no)
		return
	}
	no.Answer(w)
}
