package envd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem"
	"github.com/coppice-run/coppice/workspace/files"
)

const (
	// maxWatchers is how many polled watches one sandbox may have.
	maxWatchers = 64
	// maxEvents is how many events of one are kept until they are fetched.
	maxEvents = 10_000
	// keepAlive is how often a client hears that a stream lives on which nothing
	// happens, unless it names another time.
	keepAlive = 90 * time.Second
)

// pingInterval is how often a client wants to hear something.
func pingInterval(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Keepalive-Ping-Interval"))
	if err != nil || n <= 0 {
		return keepAlive
	}
	return min(time.Duration(n)*time.Second, keepAlive)
}

// watched is what a client asks about a directory.
type watched struct {
	path               string
	recursive, entries bool
}

// watch tells what happens in a directory until ctx ends, or it cannot go on.
func (s *filesystemService) watch(ctx context.Context, o watched, ready func(), tell func(*filesystem.FilesystemEvent) error) error {
	f, at, err := s.at(o.path)
	if err != nil {
		return err
	}
	if err := directory(f, at); err != nil {
		return err
	}
	var t *translator
	return f.Watch(ctx, at, o.recursive, func() {
		t = newTranslator(ctx, f, at, o.recursive)
		ready()
	}, func(c files.Change) error {
		for _, kind := range t.events(c) {
			e := &filesystem.FilesystemEvent{Name: t.name(c.Path), Type: kind}
			if o.entries {
				if i, err := f.Stat(c.Path); err == nil {
					e.Entry = s.entry(f, i)
				}
			}
			if err := tell(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// WatchDir tells what happens in a directory until the client leaves.
func (s *filesystemService) WatchDir(ctx context.Context, r *connect.Request[filesystem.WatchDirRequest], out *connect.ServerStream[filesystem.WatchDirResponse]) error {
	var mu sync.Mutex // guards out, and rest
	rest := time.Now()
	send := func(m *filesystem.WatchDirResponse) error {
		mu.Lock()
		defer mu.Unlock()
		rest = time.Now()
		return out.Send(m)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var started error
	every := pingInterval(r.Header())
	pings := make(chan struct{})
	begun := false
	err := s.watch(ctx, watched{r.Msg.GetPath(), r.Msg.GetRecursive(), r.Msg.GetIncludeEntry()}, func() {
		started = send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Start{Start: &filesystem.WatchDirResponse_StartEvent{}}})
		begun = true
		go func() { // ends with ctx; joined below
			defer close(pings)
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				mu.Lock()
				idle := time.Since(rest) >= every/2
				mu.Unlock()
				if idle && send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Keepalive{Keepalive: &filesystem.WatchDirResponse_KeepAlive{}}}) != nil {
					cancel()
				}
			}
		}()
	}, func(e *filesystem.FilesystemEvent) error {
		if started != nil {
			return started
		}
		return send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Filesystem{Filesystem: e}})
	})
	cancel()
	if begun {
		<-pings
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// watcher is a watch whose events a client fetches.
type watcher struct {
	end context.CancelFunc

	mu     sync.Mutex
	events []*filesystem.FilesystemEvent // guarded by mu
	err    error                         // why it has ended; guarded by mu
}

// add keeps an event, and drops the oldest when there are too many.
func (w *watcher) add(e *filesystem.FilesystemEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) >= maxEvents {
		w.events = append(w.events[:0], w.events[len(w.events)-maxEvents/2:]...)
	}
	w.events = append(w.events, e)
	return nil
}

// CreateWatcher begins a watch whose events the client fetches.
func (s *filesystemService) CreateWatcher(ctx context.Context, r *connect.Request[filesystem.CreateWatcherRequest]) (*connect.Response[filesystem.CreateWatcherResponse], error) {
	id := uuid.NewString()
	life, end := context.WithCancel(s.life)
	w := &watcher{end: end}
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		end()
		return nil, failed(files.ErrClosed)
	case len(s.watchers) >= maxWatchers:
		s.mu.Unlock()
		end()
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the sandbox has %d watches; remove one", maxWatchers))
	}
	s.watchers[id] = w
	ready, over := make(chan struct{}), make(chan struct{})
	s.runs.Go(func() { // ends with life
		defer close(over)
		err := s.watch(life, watched{r.Msg.GetPath(), r.Msg.GetRecursive(), r.Msg.GetIncludeEntry()}, func() { close(ready) }, w.add)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	})
	s.mu.Unlock()
	select {
	case <-ready:
		return connect.NewResponse(&filesystem.CreateWatcherResponse{WatcherId: id}), nil
	case <-over:
	case <-ctx.Done():
		end()
		<-over
	}
	s.mu.Lock()
	delete(s.watchers, id)
	s.mu.Unlock()
	end()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = errors.New("the directory has gone")
	}
	return nil, failed(w.err)
}

// find returns a watch.
func (s *filesystemService) find(id string) (*watcher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.watchers[id]
	if w == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no watch %.80q", id))
	}
	return w, nil
}

// GetWatcherEvents returns what has happened since it was asked last.
func (s *filesystemService) GetWatcherEvents(_ context.Context, r *connect.Request[filesystem.GetWatcherEventsRequest]) (*connect.Response[filesystem.GetWatcherEventsResponse], error) {
	w, err := s.find(r.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && len(w.events) == 0 {
		return nil, failed(w.err)
	}
	events := w.events
	w.events = nil
	return connect.NewResponse(&filesystem.GetWatcherEventsResponse{Events: events}), nil
}

// RemoveWatcher ends such a watch.
func (s *filesystemService) RemoveWatcher(_ context.Context, r *connect.Request[filesystem.RemoveWatcherRequest]) (*connect.Response[filesystem.RemoveWatcherResponse], error) {
	w, err := s.find(r.Msg.GetWatcherId())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.watchers, r.Msg.GetWatcherId())
	s.mu.Unlock()
	w.end()
	return connect.NewResponse(&filesystem.RemoveWatcherResponse{}), nil
}
