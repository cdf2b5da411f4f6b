package access

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/file/lines"
)

// Audit is a file with a line for each request that a token let in: who asked for what, when
// and from where, and how it was answered. It holds no token, no code and no path. Any
// goroutine may use it; nil notes nothing.
type Audit struct {
	file   *lines.File
	logger *slog.Logger
}

// OpenAudit opens the file, of mode 0600, and makes it if it is not there. It grows to 16
// MiB, and the three before are kept.
func OpenAudit(path string, logger *slog.Logger) (*Audit, error) {
	f, err := lines.Open(lines.Options{Path: path})
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Audit{f, logger}, nil
}

// Close closes the file.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}

// entry is a line.
type entry struct {
	At time.Time `json:"at"`
	// Token is the ID of the token, and Tenant its tenant.
	Token  string           `json:"token"`
	Tenant string           `json:"tenant"`
	Scope  httpserver.Scope `json:"scope"`
	// In is the tenant that an admin's request was about, where that is another one.
	In     string `json:"in,omitempty"`
	Route  string `json:"route"`
	Method string `json:"method"`
	Status int    `json:"status"`
	Remote string `json:"remote"`
	// Seconds is how long it took, or how long a stream was open.
	Seconds float64 `json:"seconds"`
	// Ended says that it was ended because the token opens nothing any more.
	Ended bool `json:"ended,omitempty"`
}

// note notes each request to a part of a tenant when it has ended.
func (a *Audit) note(tenant string, next http.Handler) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := httpserver.PassOf(r.Context())
		if p.ID == "" { // the page, without a token
			next.ServeHTTP(w, r)
			return
		}
		began, seen := time.Now(), &answer{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			e := entry{
				At: began.UTC(), Token: p.ID, Tenant: p.Tenant, Scope: p.Scope, Route: httpserver.Route(r.Context()), Method: r.Method,
				Status: seen.status, Remote: r.RemoteAddr, Seconds: time.Since(began).Seconds(), Ended: httpserver.Over(r.Context()),
			}
			if tenant != p.Tenant {
				e.In = tenant
			}
			line, err := json.Marshal(e)
			if err == nil {
				err = a.file.Append(append(line, '\n'))
			}
			if err != nil {
				a.logger.Error("a request is not in the audit log", "token", p.ID, "err", err)
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// answer sees the status of an answer.
type answer struct {
	http.ResponseWriter

	status int
	begun  bool
}

// WriteHeader is that of an http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if !a.begun {
		a.status, a.begun = status, status >= http.StatusOK || status == http.StatusSwitchingProtocols
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write is that of an http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}

// Flush sends what was written.
func (a *answer) Flush() {
	a.begun = true
	_ = http.NewResponseController(a.ResponseWriter).Flush() // who has gone cannot be told
}

// Hijack hands the connection over.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.status, a.begun = http.StatusSwitchingProtocols, true
	}
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
