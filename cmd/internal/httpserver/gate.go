package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/inbound"
	"github.com/coppice-run/coppice/internal/opportunity"
)

// Gate holds requests up while a server is handed over, so that none is refused for it.
//
//	         Hold                 Pass
//	open ──────────▶ held ──────────────────▶ passed
//	  ▲                │                        every request goes to the other server
//	  └────Release─────┘ what waited is served
//
// The zero value is open. Any goroutine may call its methods.
type Gate struct {
	mu      sync.Mutex
	opens   chan struct{}  // closed when the gate is no longer held; nil: it is not; guarded by mu
	to      http.Handler   // where requests go that have passed; nil: they are served; guarded by mu
	inside  map[string]int // how many requests are served, by their routes; guarded by mu
	emptied chan struct{}  // closed when none is, while somebody waits for that; guarded by mu
}

// Wrap returns what serves requests, as far as the gate lets them in.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Method + " " + r.URL.Path
		to, err := g.enter(r.Context(), name)
		switch {
		case err != nil: // by the server's end: a client that has gone hears nothing
			Error(w, http.StatusServiceUnavailable, "draining", "the server has ended while another one was about to replace it: "+err.Error(), "ask again")
			return
		case to != nil:
			clear(w.Header()) // the other server sets its own
		default:
			to = next
		}
		defer g.leave(name)
		to.ServeHTTP(w, r)
	})
}

// enter waits while the gate is held, and counts the request. It returns where the request is
// to go, nil: in.
func (g *Gate) enter(ctx context.Context, name string) (http.Handler, error) {
	for {
		g.mu.Lock()
		opens, to := g.opens, g.to
		if opens == nil {
			if g.inside == nil {
				g.inside = map[string]int{}
			}
			g.inside[name]++
		}
		g.mu.Unlock()
		if opens == nil {
			return to, nil
		}
		select {
		case <-opens:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (g *Gate) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside[name]--; g.inside[name] == 0 {
		delete(g.inside, name)
	}
	if len(g.inside) == 0 && g.emptied != nil {
		close(g.emptied)
		g.emptied = nil
	}
}

// Hold lets nobody in from now on. Those who come wait.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opens == nil && g.to == nil {
		g.opens = make(chan struct{})
	}
}

// emptying is how long requests may take to be answered that were let in before.
var emptying = opportunity.Budget{Opportunity: time.Second}

// EmptySoon is Empty for no longer than a second: who is held must not wait for long.
func (g *Gate) EmptySoon(ctx context.Context) error {
	ctx, done := opportunity.Within(ctx, emptying, nil)
	defer done()
	return g.Empty(ctx)
}

// Empty returns when no request is being served, or handed on. The error says which ones
// still are when ctx ends.
func (g *Gate) Empty(ctx context.Context) error {
	g.mu.Lock()
	if len(g.inside) == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.emptied == nil {
		g.emptied = make(chan struct{})
	}
	emptied := g.emptied
	g.mu.Unlock()
	select {
	case <-emptied:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for name, n := range g.inside {
		names = append(names, fmt.Sprintf("%s (%d)", name, n))
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("requests are being served: %s", strings.Join(names, ", "))
}

// Release serves who waits, and who comes.
func (g *Gate) Release() { g.open(nil) }

// Pass sends who waits, and who comes, to another handler.
func (g *Gate) Pass(to http.Handler) { g.open(to) }

func (g *Gate) open(to http.Handler) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
	if g.opens != nil {
		close(g.opens)
		g.opens = nil
	}
}

// Relay returns a handler that has another server answer, which listens at addr and has the
// same token. Connections are not kept: the next request goes there by itself. So do streams,
// which are broken off after a while: who reads one asks again from where it broke.
func Relay(addr string, streams time.Duration) http.Handler {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: inbound.ContinueTimeout}
	relay := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: addr})
			r.Out.Host = r.In.Host
		},
		Transport: transport, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0), // that a stream was broken off is no news
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode != http.StatusSwitchingProtocols {
				r.Header.Set("Connection", "close")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			inbound.Unsent(w, r)
			if errors.Is(err, context.DeadlineExceeded) { // a stream that had not begun is broken off, too
				panic(http.ErrAbortHandler)
			}
			w.Header().Set("Retry-After", "1")
			Error(w, http.StatusServiceUnavailable, "unavailable", "the server was replaced, and the new one does not answer: "+err.Error(), "ask again")
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" || strings.Contains(r.Header.Get("Accept"), "text/event-stream") || strings.HasSuffix(r.URL.Path, "/events") {
			ctx, done := context.WithTimeout(r.Context(), streams)
			defer done()
			r = r.WithContext(ctx)
		}
		relay.ServeHTTP(inbound.Relayed(w, r))
	})
}
