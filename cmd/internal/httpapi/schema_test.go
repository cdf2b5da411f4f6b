package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/toolapi"
	"github.com/coppice-run/coppice/messages"
)

// TestLiveness: without the token a probe learns that the server lives, and no more; a
// wrong token is told.
func TestLiveness(t *testing.T) {
	t.Parallel()
	s := serveAs(t, load(t), coppice.Options{}, httpapi.Options{}, toolapi.Options{})
	status, body := s.ask("GET", "/api/health", "", "Authorization", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok"}`, body)
	status, _ = s.ask("GET", "/api/health", "", "Authorization", "Bearer wrong")
	require.Equal(t, http.StatusUnauthorized, status)
	status, body = s.ask("GET", "/api/health", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"pid":`)
}

// TestWhatTheSchemaForbids is refused with 400, where decoding alone would take no
// notice of it.
func TestWhatTheSchemaForbids(t *testing.T) {
	t.Parallel()
	s := serveAs(t, load(t), coppice.Options{}, httpapi.Options{}, toolapi.Options{})
	s.run("a", "1")
	runs, err := s.Executions(t.Context(), messages.SessionKey{Session: "a"})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	e := runs[0].ID
	cells := `"session":"a","cells":[{"code":"1"}]`
	for request, want := range map[string]string{
		`POST /api/sessions {"session":"a","owner":null}`:              "owner is null",
		`POST /api/sessions {"session":"a","pin":null}`:                "pin is null",
		`POST /api/sessions {"owner":"x"}`:                             "session is missing",
		`POST /api/sessions {"Session":"a"}`:                           "session is missing",
		`POST /api/sessions null`:                                      "it is null",
		`POST /api/executions {` + cells + `,"timeout_seconds":null}`:  "timeout_seconds is null",
		`POST /api/executions {` + cells + `,"timeout_seconds":86401}`: "at most 86400",
		`POST /api/executions {"session":"a","cells":[{"title":"x"}]}`: "cells[0].code is missing",
		`POST /api/executions {"session":"a","cells":[null]}`:          "cells[0] is null",
		`POST /api/executions {` + cells + `,"env":{"A":null}}`:        "env.A is null",
		`POST /api/executions/` + e + `/input {"id":"q"}`:              "value is missing",
		`POST /api/executions/` + e + `/input {"id":"q","value":null}`: "value is null",
		`POST /api/notebooks/apply {"path":"a.ipynb"}`:                 "text is missing",
		`POST /api/notebooks/show {"path":"a.txt"}`:                    "is no path of a notebook",
		`POST /api/sessions/a/fork {"copies":null}`:                    "copies is null",
		`POST /api/sessions/a/fork {"copies":0,"names":[]}`:            "copies must be a whole number from 1",
		`POST /api/sessions/a/fork {"copies":1.5}`:                     "copies must be a whole number from 1",
		`GET /api/changes?after=null `:                                 "is no number",
		`GET /api/changes?after= `:                                     "is no number",
		`GET /api/changes?after=-1 `:                                   "is no number",
		`GET /api/executions/` + e + `/events?after=null `:             "is no number",
		`GET /api/executions/` + e + `?wait=61 `:                       "from 0 to 60",
		`GET /api/executions/` + e + `?wait= `:                         "from 0 to 60",
		`GET /api/artifacts/1?first=0 `:                                "from 1",
		`GET /api/artifacts/1?last= `:                                  "from 1",
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		status, answer := s.ask(method, path, body)
		require.Equal(t, http.StatusBadRequest, status, "%s: %s", request, answer)
		require.Contains(t, answer, want, request)
	}
	// A cursor in the header does not excuse one in the address.
	status, _ := s.ask("GET", "/api/changes?after=null", "", "Last-Event-ID", "0")
	require.Equal(t, http.StatusBadRequest, status)
	// What would be wrong in a fleet is wrong outside of one.
	for _, epoch := range []string{"", "0", "01", "x", "-1", "1.0", "9999999999999999999"} {
		status, answer := s.ask("GET", "/api/sessions/a", "", "Coppice-Epoch", epoch)
		require.Equal(t, http.StatusBadRequest, status, "%q: %s", epoch, answer)
		require.Contains(t, answer, "must be a number from 1")
	}
}

// TestTheDocumentForGenerators: each operation has a name that no other has, which
// becomes that of a function. An array says what is in it, and a stream what its events
// are, and of itself that it is anything: some take its schema for that of an event, others
// for that of a list of events, and without one some read nothing.
func TestTheDocumentForGenerators(t *testing.T) {
	t.Parallel()
	s := load(t)
	for name, raw := range s.Components.Schemas {
		require.False(t, arrayWithoutItems(t, raw), name)
	}
	named := map[string]string{}
	for path, methods := range s.Paths {
		for method, operation := range methods {
			require.NotEmpty(t, operation.OperationID, "%s %s", method, path)
			require.Empty(t, named[operation.OperationID], "%s has the name of %s %s", operation.OperationID, method, path)
			named[operation.OperationID] = method + " " + path
			for status, a := range operation.Responses {
				if m, ok := a.Content["text/event-stream"]; ok {
					require.NotNil(t, m.Schema, "%s %s %s", method, path, status)
					require.Empty(t, m.Schema.Type+m.Schema.Ref, "%s %s %s", method, path, status)
					require.NotNil(t, m.Data, "%s %s %s", method, path, status)
				}
			}
		}
	}
}

// TestOneCopyIsTheDefault: a fork that says nothing else makes one copy.
func TestOneCopyIsTheDefault(t *testing.T) {
	t.Parallel()
	s := serveAs(t, load(t), coppice.Options{}, httpapi.Options{}, toolapi.Options{})
	s.run("a", "x = 40")
	for body, want := range map[string]int{`{}`: 1, `{"names":[]}`: 1, `{"copies":2.0}`: 2, `{"names":["b","c"]}`: 2} {
		status, answer := s.ask("POST", "/api/sessions/a/fork", body)
		require.Equal(t, http.StatusCreated, status, answer)
		require.Equal(t, want, strings.Count(answer, `"session":`), answer)
	}
}

// arrayWithoutItems reports whether a schema has one somewhere.
func arrayWithoutItems(t *testing.T, raw json.RawMessage) bool {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(raw, &v))
	var has func(v any) bool
	has = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			if v["type"] == "array" && v["items"] == nil {
				return true
			}
			for _, one := range v {
				if has(one) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, has)
		}
		return false
	}
	return has(v)
}
