package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/fleet"
)

// TestFront: a request goes to the sandbox of its key, with what the front shows; who knows where an
// execution is asks any front for it; and what is in one is ended with it.
func TestFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f, other := newFront(r), newFront(r)
		begun := asks(t, f, http.MethodPost, "/api/executions", `{"id":"x1","session":"s"}`, 0)
		require.Equal(t, http.StatusCreated, begun.Code, begun.Body)
		require.Equal(t, "room", begun.Header().Get(fleetapi.HeaderNode))
		require.Equal(t, "10", begun.Header().Get(httpserver.HeaderEpoch))
		require.Empty(t, begun.Header().Get(httpserver.HeaderServer))
		require.Empty(t, begun.Header().Get("Set-Cookie"))
		require.Equal(t, "/api/executions/x1?epoch=10&session=s", begun.Header().Get("Location"))
		got := r.room(inSandbox).got[0]
		require.Equal(t, "sandbox.test", got.Host)
		require.Equal(t, "Bearer of-the-front", got.Header.Get("Authorization"))
		require.Empty(t, got.Header.Get("Cookie"))
		require.Empty(t, got.Header.Get(httpserver.HeaderEpoch))

		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/executions/x1", "", 0).Code, "it knows where that is")
		require.Equal(t, http.StatusNotFound, asks(t, other, http.MethodGet, "/api/executions/x1", "", 0).Code)
		require.Equal(t, http.StatusOK, asks(t, other, http.MethodGet, begun.Header().Get("Location"), "", 0).Code)
		require.Equal(t, http.StatusGone, asks(t, other, http.MethodGet, "/api/executions/x1?epoch=9&session=s", "", 0).Code)
		require.Contains(t, asks(t, other, http.MethodGet, "/api/sessions", "", 0).Body.String(), `{"node":"room","session":"s"}`)

		made := asks(t, f, http.MethodPost, "/api/workspaces", `{"name":"w"}`, 0)
		require.Equal(t, "20", made.Header().Get(httpserver.HeaderEpoch), "one of its own")
		in := asks(t, other, http.MethodPost, "/api/executions", `{"id":"x2","session":"s","workspace":"w"}`, 0)
		require.Equal(t, "20", in.Header().Get(httpserver.HeaderEpoch))
		require.Contains(t, in.Header().Get("Location"), "workspace=w")
		require.Equal(t, http.StatusOK, asks(t, other, http.MethodPut, "/api/workspaces/w/files", "x", 0).Code)
		require.Equal(t, http.StatusConflict, asks(t, f, http.MethodDelete, "/api/workspaces/w", "", 9).Code)
		require.Equal(t, http.StatusNoContent, asks(t, f, http.MethodDelete, "/api/workspaces/w", "", 20).Code)
		require.Equal(t, http.StatusNoContent, asks(t, f, http.MethodDelete, "/api/sessions/s", "", 0).Code)
		require.Equal(t, http.StatusNotFound, asks(t, f, http.MethodDelete, "/api/sessions/s", "", 0).Code)
		require.Len(t, r.ended, 2)
	})
}

// TestFrontMakesNothing for what cannot be there, or cannot begin.
func TestFrontMakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		for request, want := range map[[3]string]int{
			{http.MethodPost, "/api/executions", `{`}:                               http.StatusBadRequest,
			{http.MethodPost, "/api/executions", `{"session":"s","workspace":"w"}`}: http.StatusNotFound,
			{http.MethodPost, "/api/workspaces", `{"name":""}`}:                     http.StatusBadRequest,
			{http.MethodPost, "/api/workspaces", `{"name":"../w"}`}:                 http.StatusBadRequest,
			{http.MethodPost, "/api/sessions/s/fork", `{}`}:                         http.StatusBadRequest,
			{http.MethodPost, "/api/sessions/s/rewind", `{}`}:                       http.StatusNotFound,
			{http.MethodGet, "/api/sessions/s", ""}:                                 http.StatusNotFound,
			{http.MethodGet, "/api/workspaces/w", ""}:                               http.StatusNotFound,
			{http.MethodPost, "/api/notebooks/run", `{"session":"s"}`}:              http.StatusNotFound,
		} {
			require.Equal(t, want, asks(t, f, request[0], request[1], request[2], 0).Code, request)
		}
		for code, err := range map[string]error{
			"starting":   &fleet.SandboxError{Name: "room", Reason: "Pending", Err: context.DeadlineExceeded},
			"no_sandbox": &fleet.SandboxError{Name: "room", Reason: "TemplateNotFound"},
			"suspended":  errors.New("connection refused"),
		} {
			r.fails = fmt.Errorf("claim: %w", err)
			require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0).Body.String(), `"code":"`+code+`"`)
		}
		require.Zero(t, r.n)
	})
}

// TestFrontAndFence: what a sandbox has done whose claim is another's by then is lost, and its answer
// does not leave; who knows an epoch that is over is refused, and nothing is done twice.
func TestFrontAndFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		const body = `{"id":"x1","session":"s"}`
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 0).Code)
		first := r.room(inSandbox)
		first.between = func() { r.replace(inSandbox, first.Epoch) }
		lost := asks(t, f, http.MethodGet, "/api/sessions/s", "", 0)
		require.Equal(t, http.StatusGone, lost.Code)
		require.NotContains(t, lost.Body.String(), "counted")
		require.Equal(t, 2, first.counted, "it was done")

		gone := asks(t, f, http.MethodPost, "/api/executions", body, first.Epoch)
		require.Contains(t, gone.Body.String(), `"epoch_gone"`)
		require.Equal(t, "20", gone.Header().Get(httpserver.HeaderEpoch))
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 0).Body.String(), `"epoch_needed"`)
		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Code, "who only looks need not know")
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 20).Code)

		second := r.room(inSandbox)
		second.breaks, second.between = true, func() { r.replace(inSandbox, 0) } // nobody knows of it any more
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 20).Body.String(), `"lost"`)
		require.Zero(t, r.room(inSandbox).counted, "it may have been done before")

		third := r.room(inSandbox)
		third.breaks = true
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", body, 0).Code, "the same server does it once")
		third.breaks = true
		require.Contains(t, asks(t, f, http.MethodPost, "/api/sessions/s/interrupt", "", 0).Body.String(), `"unanswered"`)
		third.life += "+"
		counted := third.counted
		require.Contains(t, asks(t, f, http.MethodPost, "/api/executions", body, 0).Body.String(), `"owner_away"`, "another answers there")
		require.Equal(t, counted, third.counted)
	})
}

// TestFrontKnowsNothing: while it is not known whose an answer is, it does not leave.
func TestFrontKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRooms()
		defer r.Close()
		f := newFront(r)
		require.Equal(t, http.StatusCreated, asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0).Code)
		r.blind = errors.New("the API server is away")
		answer := asks(t, f, http.MethodPost, "/api/executions", `{"session":"s"}`, 0)
		require.Equal(t, http.StatusBadGateway, answer.Code)
		require.NotContains(t, answer.Body.String(), "counted")
		require.Equal(t, http.StatusServiceUnavailable, asks(t, f, http.MethodGet, "/api/sessions", "", 0).Code)
		go func() { // ends with the bubble's next second
			time.Sleep(time.Second)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.blind = nil
		}()
		require.Equal(t, http.StatusOK, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Code, "it waits until it is known")
		r.room(inSandbox).shut = true
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Body.String(), `"no_sandbox"`)
		r.mu.Lock()
		delete(r.at, "room-1.test")
		r.mu.Unlock()
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions/s", "", 0).Body.String(), `"owner_away"`)
		require.Contains(t, asks(t, f, http.MethodGet, "/api/sessions", "", 0).Body.String(), `"unreachable":["room"]`)
	})
}

// TestFrontCutsStreams: what a sandbox streams is cut off, and not ended, once its key is another's.
func TestFrontCutsStreams(t *testing.T) {
	r := newRooms()
	defer r.Close()
	_, err := r.Claim(t.Context(), about.WorkspaceKey("w").ID())
	require.NoError(t, err)
	one := r.room(about.WorkspaceKey("w").ID())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(httpserver.HeaderServer, one.Server)
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	one.URL = s.URL
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	f := New(Options{Sandboxes: r, Transport: transport})
	mux := http.NewServeMux()
	for _, m := range f.Mounts() {
		mux.Handle(m.Pattern, m.Handler)
	}
	front := httptest.NewServer(mux)
	defer front.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/api/workspaces/w/files/watch", http.NoBody)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	begins := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, begins)
	require.NoError(t, err)
	require.Equal(t, "begun", string(begins))
	require.NoError(t, r.End(t.Context(), about.WorkspaceKey("w").ID()))
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
