package jupyterapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

// stamp is a time as Jupyter writes it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// problem is an error as Jupyter Server writes it.
type problem struct {
	Message string `json:"message"`
	// Reason is a word or a sentence more; null where there is none.
	Reason *string `json:"reason"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, message, reason string) {
	p := problem{Message: message}
	if reason != "" {
		p.Reason = &reason
	}
	httpserver.JSON(w, status, p)
}

// nothing answers where nothing is.
func nothing(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotFound, "Not Found", "")
}

// lacking refuses what a Jupyter Server has and this one has not.
func lacking(why string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotImplemented, "Not Implemented", why)
	}
}

// failed answers a request that the host did not fulfil.
func failed(w http.ResponseWriter, err error) {
	_, request := errors.AsType[*coppice.RequestError](err)
	no, refusal := errors.AsType[*httpserver.Refusal](err)
	switch {
	case refusal:
		no.SayWhen(w)
		refuse(w, no.Status, no.Message, no.Hint)
	case request:
		refuse(w, http.StatusBadRequest, "Bad Request", err.Error())
	case errors.Is(err, messages.ErrOverloaded), errors.Is(err, coppice.ErrClosed), errors.Is(err, errClosed):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable", err.Error())
	default:
		refuse(w, http.StatusInternalServerError, "Internal Server Error", err.Error())
	}
}

// body reads the body of a request, one JSON object, into to. No body is as good as an
// empty object, and members that are not known are left out: clients of all versions ask,
// and some of them do not say that it is JSON. A page of another origin has been refused
// before. Otherwise it answers with what is wrong, and returns false.
func body(w http.ResponseWriter, r *http.Request, to any) bool {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large", fmt.Sprintf("the body is larger than %d bytes", maxBody))
		return false
	}
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "Invalid JSON in body of request", err.Error())
		return false
	}
	return true
}

// version is what clients ask first.
func (a *API) version(w http.ResponseWriter, _ *http.Request) {
	httpserver.JSON(w, http.StatusOK, map[string]string{"version": spoken})
}

// status sums up.
func (a *API) status(w http.ResponseWriter, _ *http.Request) {
	connections, last := 0, a.started
	all := a.all()
	for _, k := range all {
		m := k.glance()
		connections += m.connections
		if m.active.After(last) {
			last = m.active
		}
	}
	httpserver.JSON(w, http.StatusOK, map[string]any{
		"started": stamp(a.started), "last_activity": stamp(last), "connections": connections, "kernels": len(all),
	})
}

// me is the one user that there is: who has the token.
func (a *API) me(w http.ResponseWriter, _ *http.Request) {
	httpserver.JSON(w, http.StatusOK, map[string]any{
		"identity":    map[string]any{"username": "coppice", "name": "Coppice", "display_name": "Coppice", "initials": "C", "avatar_url": nil, "color": nil},
		"permissions": map[string]any{},
	})
}

// specs lists those there are.
func (a *API) specs(w http.ResponseWriter, r *http.Request) {
	list, err := a.o.Host.Kernelspecs(r.Context())
	if err != nil {
		failed(w, err)
		return
	}
	all, usual := make(map[string]any, len(list)), ""
	for i, s := range list {
		if i == 0 {
			usual = s.Name
		}
		all[s.Name] = specModel(s)
	}
	httpserver.JSON(w, http.StatusOK, map[string]any{"default": usual, "kernelspecs": all})
}

// spec answers with one.
func (a *API) spec(w http.ResponseWriter, r *http.Request) {
	s, err := a.meant(r.Context(), r.PathValue("name"))
	if missing, ok := errors.AsType[*specError](err); ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("Kernel spec %.80s not found", missing.name), "")
		return
	} else if err != nil {
		failed(w, err)
		return
	}
	httpserver.JSON(w, http.StatusOK, specModel(s))
}
