package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/together"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
	"github.com/coppice-run/coppice/messages"
)

// maxHeld bounds how much of an answer is held back, in bytes. What is longer leaves as it comes.
const maxHeld = 16 << 20

// errOther is why a request was not done: another life of the server answers there.
const errOther = relay.NotDone("another server answers at the address of the sandbox")

// errShut is why a request was not served: the sandbox does not take what the front shows.
var errShut = errors.New("the sandbox does not let the front in")

// untrusted are headers of an answer that do not leave: a sandbox may be in the hands of the code that it
// runs, and says nothing to browsers in the name of the front.
var untrusted = []string{
	httpserver.HeaderServer, "Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Refresh",
}

// answered looks at an answer of a sandbox before anything of it leaves: one of another server is
// none, and one of a server that does not have the key any longer is lost.
func (f *Front) answered(ctx context.Context, resp *http.Response, t about.Target, s fleet.Sandbox) error {
	if resp.Header.Get(httpserver.HeaderServer) != s.Server {
		return errOther
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return errShut
	}
	if err := hold(resp); err != nil {
		return err
	}
	if err := f.confirm(ctx, s); err != nil {
		return err
	}
	for _, name := range untrusted {
		resp.Header.Del(name)
	}
	resp.Header.Set(fleetapi.HeaderNode, s.Name)
	resp.Header.Set(httpserver.HeaderEpoch, strconv.FormatUint(s.Epoch, 10))
	if t.Starts && resp.StatusCode < http.StatusMultipleChoices {
		f.begun(resp.Header, t, s)
	}
	return nil
}

// hold reads an answer that is one value: it is known to be whole then, before it is asked whose
// it is. Others, which are streams or files, leave as they come.
func hold(resp *http.Response) error {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxHeld))
	if err != nil {
		return err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), resp.Body), resp.Body}
	return nil
}

// confirm asks whether a sandbox still has its key, until that is known.
func (f *Front) confirm(ctx context.Context, s fleet.Sandbox) error {
	ctx, cancel := context.WithTimeout(ctx, f.o.Patience)
	defer cancel()
	for wait := firstPause; ; {
		err := f.o.Sandboxes.Confirm(ctx, s)
		if err == nil || errors.Is(err, fleet.ErrLost) || !pause.Wait(ctx, &wait) {
			return err
		}
	}
}

// begun notes where an execution is, and has its Location say that to any front.
func (f *Front) begun(h http.Header, t about.Target, s fleet.Sandbox) {
	execution, is := strings.CutPrefix(h.Get("Location"), "/api/executions/")
	execution, _, _ = strings.Cut(execution, "?")
	if !is {
		return
	}
	f.mu.Lock()
	f.placed.Put(execution, t.Key.ID())
	f.mu.Unlock()
	query := url.Values{"epoch": {strconv.FormatUint(s.Epoch, 10)}}
	for name, value := range map[string]string{"session": t.Key.Session, "cwd": t.Key.Cwd, "kernel": t.Key.Kernel, "workspace": t.Key.Workspace} {
		if value != "" {
			query.Set(name, value)
		}
	}
	h.Set("Location", "/api/executions/"+execution+"?"+query.Encode())
}

// byID has a request about an execution served where that is, as the query of its Location says,
// or as this front knows.
func (f *Front) byID(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		key := f.SessionKey(query.Get("session"), query.Get("cwd"), query.Get("kernel"))
		if name := query.Get("workspace"); name != "" {
			key = about.WorkspaceKey(name)
		} else if key.Session == "" {
			f.mu.Lock()
			id := f.placed.Of(r.PathValue("id"))
			f.mu.Unlock()
			key, _ = messages.ParseSessionKey(id) // of no execution there is none
		}
		if key == (messages.SessionKey{}) {
			f.refuse(r.Context(), w, fleetapi.Refusal(http.StatusNotFound, "not_found", "this front does not know the execution", "ask with the query of the Location that the answer to its begin has had", 0))
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, about.MaxBody))
		if err != nil {
			f.refuse(r.Context(), w, fleetapi.Refusal(http.StatusBadRequest, "bad_request", "the body cannot be read: "+err.Error(), "", 0))
			return
		}
		if err := f.passed(r, key); err != nil {
			f.refuse(r.Context(), w, err)
			return
		}
		f.route(w, r, nil, about.Target{Key: key, Body: body})
	})
}

// passed is the refusal for an execution that was begun in an epoch which is over, as the query of
// its Location says. nil: it was not, or the query does not say so.
func (f *Front) passed(r *http.Request, key messages.SessionKey) error {
	epoch, err := strconv.ParseUint(r.URL.Query().Get("epoch"), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // it does not say so
	}
	s, err := f.find(r.Context(), about.Target{Key: key})
	switch {
	case err == nil && s.Epoch == epoch:
		return nil
	case err == nil || errors.Is(err, fleet.ErrNoSandbox):
		return fleetapi.Refusal(http.StatusGone, "lost", fmt.Sprintf("the execution %s is lost: the epoch %d of its sandbox is over", r.PathValue("id"), epoch), "the next call begins with nothing in memory", 0)
	}
	return err
}

// mostAsked is how many sandboxes are asked at once for what they have.
const mostAsked = 16

// merged is a list of what there is in all sandboxes, in the member of an answer; each entry says
// in which. Sandboxes that gave no answer are named.
func (f *Front) merged(member string) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), f.o.Patience)
			defer cancel()
			list, err := f.o.Sandboxes.List(ctx)
			if err != nil {
				f.refuse(r.Context(), w, err)
				return
			}
			answers, heard := make([][]json.RawMessage, len(list)), make([]bool, len(list))
			slots := make(chan struct{}, mostAsked)
			var asked sync.WaitGroup
			for i, s := range list {
				slots <- struct{}{}
				asked.Go(func() {
					defer func() { <-slots }()
					answers[i], heard[i] = f.ask(ctx, r, s, member)
				})
			}
			asked.Wait()
			all, silent := []json.RawMessage{}, []string{}
			for i, s := range list {
				all = append(all, answers[i]...)
				if !heard[i] {
					silent = append(silent, s.Name)
				}
			}
			out := map[string]any{member: all}
			if len(silent) > 0 {
				out["unreachable"] = silent
			}
			httpserver.Answer(w, r, http.StatusOK, out)
		})
	}
}

// maxList bounds what a sandbox says that it has, in bytes.
const maxList = 4 << 20

// asking is how long a sandbox may take to say what it has.
const asking = 10 * time.Second

// ask asks a sandbox for a list.
func (f *Front) ask(ctx context.Context, r *http.Request, s fleet.Sandbox, member string) ([]json.RawMessage, bool) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return nil, false
	}
	f.show(out, s)
	resp, err := f.o.Transport.RoundTrip(out)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
	return together.Entries(data, member, s.Name, false), err == nil && resp.StatusCode == http.StatusOK
}

// AskServer asks the server at a URL, by the name of its certificate, which life of it answers.
func AskServer(ctx context.Context, transport http.RoundTripper, host, url string) (life string, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		return "", err
	}
	out.Host = host
	out.Header.Set(httpserver.HeaderServer, httpserver.AnyServer)
	resp, err := transport.RoundTrip(out)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close() // its head is enough
	life = resp.Header.Get(httpserver.HeaderServer)
	if resp.StatusCode != http.StatusOK || life == "" {
		return "", fmt.Errorf("the server is not ready, or does not say who it is: status %d", resp.StatusCode)
	}
	return life, nil
}

// refused is the answer for what kept a request from being served.
func (f *Front) refused(err error) *httpserver.Refusal {
	no, is := errors.AsType[*httpserver.Refusal](err)
	not, waits := errors.AsType[*fleet.SandboxError](err)
	switch {
	case is:
		return no
	case errors.Is(err, fleet.ErrNoSandbox):
		return fleetapi.Refusal(http.StatusNotFound, "not_found", "there is no sandbox of that name", "a workspace is made with POST /api/workspaces, a session with its first call", 0)
	case waits && not.Err == nil:
		return fleetapi.Refusal(http.StatusBadGateway, "no_sandbox", "nothing was begun: "+not.Error(), "this needs whoever runs the cluster", 0)
	case waits:
		return fleetapi.Refusal(http.StatusServiceUnavailable, "starting", "nothing was begun: "+not.Error(), "send it again: the sandbox is on its way", f.o.Patience/8)
	default:
		return fleetapi.Refusal(http.StatusServiceUnavailable, "suspended", fmt.Sprintf("nothing was begun, and no sandbox is ended for it: %v", err), "send it again when the API server can be reached", f.o.Patience/8)
	}
}

// goneBy is the answer to who went on with an epoch that is over. Which of two is later says
// nothing here: the clocks of two API servers may differ.
func goneBy(meant, now uint64) *httpserver.Refusal {
	return over("epoch_gone", meant, now, fmt.Sprintf("nothing was begun; to go on without it, send %s: %d", httpserver.HeaderEpoch, now))
}

// needed is the answer to who has not said which epoch they know, where code may have run in an
// earlier one.
func needed(before, now uint64) *httpserver.Refusal {
	return over("epoch_needed", before, now, fmt.Sprintf("nothing was begun; if this is no repetition, send it with %s: %d", httpserver.HeaderEpoch, now))
}

func over(code string, before, now uint64, hint string) *httpserver.Refusal {
	r := fleetapi.Refusal(http.StatusConflict, code,
		fmt.Sprintf("the sandbox is in epoch %d: what it had in memory in epoch %d is gone, and whatever was begun then and not answered is lost", now, before), hint, 0)
	r.Epoch = now
	return r
}

// unanswered is the answer for a request to which there is none that may leave.
func (f *Front) unanswered(s fleet.Sandbox, state relay.Outcome, err error) error {
	switch {
	case state == relay.Undelivered:
		return f.away(s, err)
	case errors.Is(err, fleet.ErrLost), errors.Is(err, relay.ErrGone):
		f.lost.Inc()
		return fleetapi.Lost("what became of the request", s.Name)
	case errors.Is(err, errShut):
		return fleetapi.Refusal(http.StatusBadGateway, "no_sandbox", "nothing was begun: "+err.Error(), "the token of the front is none of the sandboxes: this needs whoever runs them", 0)
	default:
		return fleetapi.Refusal(http.StatusBadGateway, "unanswered", "the sandbox "+s.Name+" gave no answer that may leave; whether the request was done is not known: "+err.Error(), "ask what became of it before it is sent again", 0)
	}
}

// away is the answer while a sandbox that is not known to be over cannot be asked.
func (f *Front) away(s fleet.Sandbox, err error) *httpserver.Refusal {
	return fleetapi.Refusal(http.StatusServiceUnavailable, "owner_away", fmt.Sprintf("the sandbox %s does not answer, and is not known to be over: %v", s.Name, err), "send it again", f.o.Patience/8)
}

// refuse answers no, and counts it. Who has gone hears nothing.
func (f *Front) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	fleetapi.Refuse(ctx, w, f.refused(err), f.refusals)
}
