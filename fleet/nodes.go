package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/pause"
)

// Nodes is which nodes there are and how they are reached, for who sends work to them. Any
// goroutine may call its methods.
type Nodes interface {
	// List returns the nodes that are up or draining, by ID. What it says may be old: a
	// node in it may be dead. It waits until all that the directory has was told.
	List(ctx context.Context) ([]Node, error)
	// Watch calls f with what List would return, first and after each change, until ctx
	// ends; the error is that of ctx, or says why there will be no further change. Several
	// changes may come as one. f is called by one goroutine at a time.
	Watch(ctx context.Context, f func([]Node)) error
	// Transport returns the URL of a node and what to send requests to it with.
	Transport(n Node) (*url.URL, http.RoundTripper, error)
}

// Roster is the [Nodes] of a directory. It has one goroutine, until Close.
type Roster struct {
	transport http.RoundTripper
	stop      context.CancelFunc
	joined    sync.WaitGroup

	mu      sync.Mutex
	nodes   map[string]Node
	whole   bool
	changed chan struct{}
}

var _ Nodes = (*Roster)(nil)

// errClosedRoster: there will be no further change.
var errClosedRoster = errors.New("the roster of nodes is closed")

// NewRoster watches the nodes of a directory until Close, which is called before that of
// the directory. Requests to nodes are sent with transport; nil: [http.DefaultTransport].
func NewRoster(d Directory, transport http.RoundTripper) *Roster {
	if transport == nil {
		transport = http.DefaultTransport
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Roster{transport: transport, stop: stop, nodes: map[string]Node{}, changed: make(chan struct{})}
	r.joined.Go(func() { r.watch(ctx, d) })
	return r
}

// Close ends the watch, and all of Watch and List that wait. A second call does nothing.
func (r *Roster) Close() {
	r.stop()
	r.joined.Wait()
}

func (r *Roster) watch(ctx context.Context, d Directory) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.changed)
		r.changed = nil
	}()
	for wait := firstPause; ; {
		// A watch that breaks off leaves what it has said. Records are not removed, so that
		// the next one corrects all of it.
		_ = d.Watch(ctx, nodePrefix, func(e Entry) {
			wait = firstPause
			r.take(e)
		})
		if !pause.Wait(ctx, &wait) {
			return
		}
	}
}

// take notes what the directory says of a node, or that it has said all.
func (r *Roster) take(e Entry) {
	n, found, err := readNode(e)
	if e.Key != "" && (err != nil || !found) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Key == "":
		r.whole = true
	case n.State.Final():
		delete(r.nodes, n.ID)
	default:
		r.nodes[n.ID] = n
	}
	if r.whole {
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// now returns the nodes once all were told, and what is closed by the next change: nil
// after Close.
func (r *Roster) now() (nodes []Node, whole bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes, r.whole, r.changed
}

// List implements [Nodes].
func (r *Roster) List(ctx context.Context) ([]Node, error) {
	for {
		nodes, whole, changed := r.now()
		if whole {
			return nodes, nil
		}
		if changed == nil {
			return nil, errClosedRoster
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("list the nodes: %w", ctx.Err())
		}
	}
}

// Watch implements [Nodes].
func (r *Roster) Watch(ctx context.Context, f func([]Node)) error {
	for {
		nodes, whole, changed := r.now()
		if changed == nil {
			return errClosedRoster
		}
		if whole {
			f(nodes)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Transport implements [Nodes].
func (r *Roster) Transport(n Node) (*url.URL, http.RoundTripper, error) {
	u, err := url.Parse(n.URL)
	if err == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = fmt.Errorf("%q is no URL of HTTP", n.URL)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reach node %s: %w", n.ID, err)
	}
	return u, r.transport, nil
}
