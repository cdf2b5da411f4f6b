package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// maxTimeout bounds the times that a client may name, in seconds: a day.
const maxTimeout = 86400

// maxWait bounds how long a request may wait for an end, in seconds.
const maxWait = 60

// seconds reads a time of a request; what is negative stays so.
func seconds(name string, s float64) (time.Duration, error) {
	if math.IsNaN(s) || s > maxTimeout {
		return 0, badRequest{fmt.Sprintf("%s must be at most %d, not %v", name, maxTimeout, s), ""}
	}
	if s < 0 {
		return coppice.NoTimeout, nil
	}
	return time.Duration(s * float64(time.Second)), nil
}

func (a *API) start(w http.ResponseWriter, r *http.Request) {
	var e client.Execute
	if !a.body(w, r, &e) {
		return
	}
	_, err := seconds("timeout_seconds", e.Timeout)
	if err == nil {
		err = checkName(e.Session)
	}
	if err == nil && !slices.Contains([]messages.KernelMode{"", messages.ModeSession, messages.ModePerCall}, e.Mode) {
		err = badRequest{fmt.Sprintf("the mode %.40q is not one of session, per-call", e.Mode), ""}
	}
	if err == nil && len(e.Cells) == 0 {
		err = badRequest{"there are no cells", `send {"cells": [{"code": "1+1"}]}`}
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	_, key, err := a.at(e.Session, e.Cwd, e.Workspace, e.Kernel)
	if err != nil {
		a.problem(w, err)
		return
	}
	run, err := a.task(e)
	if err != nil {
		a.problem(w, err)
		return
	}
	info := client.Execution{ID: e.ID, Kind: client.KindCall, Session: key.Session, Cwd: key.Cwd, Workspace: key.Workspace, Kernel: key.Kernel, Owner: e.Owner, Title: titleOf(e.Cells), Cells: len(e.Cells)}
	x, mine, err := a.begin(r.Context(), info, e, run)
	a.begun(w, x, mine, err)
}

// task makes a call that was asked for.
func (a *API) task(e client.Execute) (task, error) {
	timeout, err := seconds("timeout_seconds", e.Timeout)
	if err != nil {
		return nil, err
	}
	session, _, err := a.at(e.Session, e.Cwd, e.Workspace, e.Kernel)
	if err != nil {
		return nil, err
	}
	request := coppice.Request{
		Cells: e.Cells, Timeout: timeout, Reset: e.Reset, ResetNames: e.ResetNames, Mode: e.Mode, Env: e.Env, CallEnv: e.CallEnv,
		AllowStdin: e.AllowStdin, Owner: e.Owner,
	}
	return func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error) {
		request.OnQueued, request.ID = queued, x.info.ID
		var result messages.Result
		for event, err := range session.Stream(a.o.Of(ctx, x.info.ID), request) {
			if err != nil {
				return result, nil, err
			}
			if final, ok := event.(messages.Final); ok {
				result = final.Result
				continue
			}
			x.event(event, a.o.Logger)
		}
		return result, nil, nil
	}, nil
}

// begun answers with an execution that was begun, or was there.
func (a *API) begun(w http.ResponseWriter, x *execution, mine bool, err error) {
	if err != nil {
		a.problem(w, err)
		return
	}
	status := http.StatusOK
	if mine {
		status = http.StatusCreated
	}
	w.Header().Set("Location", "/api/executions/"+x.info.ID+place(x, w.Header().Get(httpserver.HeaderEpoch)))
	httpserver.JSON(w, status, x.show())
}

// place is the query by which any server of a fleet finds out what became of an execution
// whose own is gone; "" where there is no fleet, and so no epoch.
func place(x *execution, epoch string) string {
	if epoch == "" {
		return ""
	}
	query := url.Values{"session": {x.info.Session}, "cwd": {x.info.Cwd}, "epoch": {epoch}}
	if x.info.Kernel != "" {
		query.Set("kernel", x.info.Kernel)
	}
	return "?" + query.Encode()
}

func (a *API) show(w http.ResponseWriter, r *http.Request) {
	x, err := a.lookup(r.PathValue("id"))
	wait := 0.0
	if values, given := r.URL.Query()["wait"]; given && err == nil {
		if wait, err = strconv.ParseFloat(values[0], 64); err != nil || math.IsNaN(wait) || wait < 0 || wait > maxWait {
			err = badRequest{fmt.Sprintf("wait must be from 0 to %d seconds, not %.40q", maxWait, values[0]), ""}
		}
		if len(values) > 1 {
			err = badRequest{fmt.Sprintf("wait is there %d times", len(values)), ""}
		}
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	if wait > 0 {
		timer := time.NewTimer(time.Duration(wait * float64(time.Second)))
		defer timer.Stop()
		ctx, read := a.handing.Reading(r.Context())
		defer read()
		select {
		case <-x.ended:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	httpserver.Answer(w, r, http.StatusOK, x.show())
}

func (a *API) input(w http.ResponseWriter, r *http.Request) {
	x, err := a.lookup(r.PathValue("id"))
	if err != nil {
		a.problem(w, err)
		return
	}
	var in struct {
		ID    string `json:"id"`
		Value string `json:"value"`
	}
	if !a.body(w, r, &in) {
		return
	}
	session := a.o.Host.Session(x.info.Session, coppice.In(x.info.Cwd), coppice.InWorkspace(x.info.Workspace), coppice.OnKernel(x.info.Kernel))
	status, err := session.SubmitInput(in.ID, in.Value)
	if err != nil {
		a.problem(w, err)
		return
	}
	if status == messages.InputAccepted {
		a.o.Answered(x.info.ID)
	}
	httpserver.JSON(w, http.StatusOK, map[string]any{"status": status})
}

// cancel ends an execution. It does not wait for the end.
func (a *API) cancel(w http.ResponseWriter, r *http.Request) {
	x, err := a.lookup(r.PathValue("id"))
	if err != nil {
		a.problem(w, err)
		return
	}
	x.cancel()
	httpserver.JSON(w, http.StatusAccepted, x.describe(true))
}

// cursor is the number after which a reader wants what follows.
func cursor(r *http.Request) (uint64, error) {
	n := uint64(0)
	for _, text := range append(r.URL.Query()["after"], r.Header.Values("Last-Event-ID")...) { // the last one counts
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil && !errors.Is(err, strconv.ErrRange) { // one that large is ahead
			return 0, badRequest{fmt.Sprintf("the cursor %.40q is no number", text), "send the id of the last event that you saw, or 0"}
		}
	}
	return n, nil
}

// errAhead is what a reader hears who was at another execution.
var errAhead = errors.New("the cursor is ahead of the events that there are")
