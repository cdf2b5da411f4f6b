package liveview

import (
	"net/http"
	"slices"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/messages"
)

// routes are what the page asks of the vitals, with the token.
func routes(v *vitals.Vitals, cwd string) []httpserver.Mount {
	return []httpserver.Mount{
		{Pattern: "GET /api/overview", Scope: httpserver.Read, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			after, _, err := httpserver.Number(r, "after", 0)
			if err != nil {
				httpserver.Error(w, http.StatusBadRequest, "bad_request", err.Error(), "send the newest number that you have, or leave it out")
				return
			}
			since, err := httpserver.Time(r, "since")
			if err != nil {
				httpserver.Error(w, http.StatusBadRequest, "bad_request", err.Error(), "send a time as in RFC 3339, such as 2026-01-02T15:04:05Z, or leave it out")
				return
			}
			o, err := v.Overview(r.Context(), uint64(after))
			if err != nil {
				httpserver.Error(w, http.StatusServiceUnavailable, "unavailable", "the sessions could not be looked at: "+err.Error(), "ask again")
				return
			}
			o.Samples = slices.DeleteFunc(o.Samples, func(s client.Sample) bool { return !s.At.After(since) })
			httpserver.Answer(w, r, http.StatusOK, o)
		})},
		{Pattern: "GET /api/story", Scope: httpserver.Read, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			q := r.URL.Query()
			key := messages.SessionKey{Session: q.Get("session"), Cwd: cwd, Workspace: q.Get("workspace"), Kernel: q.Get("kernel")}.In(q.Get("cwd"))
			if key.Session == "" {
				httpserver.Error(w, http.StatusBadRequest, "bad_request", "no session is named", "GET /api/story?session=analysis")
				return
			}
			httpserver.Answer(w, r, http.StatusOK, v.Story(key))
		})},
	}
}
