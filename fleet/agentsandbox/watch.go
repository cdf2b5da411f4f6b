package agentsandbox

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	retrywatch "k8s.io/client-go/tools/watch"

	"github.com/coppice-run/coppice/fleet"
)

// binding is one that somebody was told of. Its fields do not change.
type binding struct {
	name, uid, server string
	epoch             uint64
	over              context.Context //nolint:containedctx // it is what is told
	end               context.CancelFunc
}

// told is a claim that is bound, as others see it.
func (s *Sandboxes) told(c claim) fleet.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := c.uid + "/" + c.bound.Server
	b := s.bindings[id]
	if b == nil {
		b = &binding{name: c.name, uid: c.uid, server: c.bound.Server, epoch: c.bound.Epoch}
		b.over, b.end = context.WithCancel(context.Background())
		if s.closed {
			b.end()
		} else {
			s.bindings[id] = b
		}
	}
	return fleet.Sandbox{
		Key: c.key, Name: c.name, UID: c.uid, Server: c.bound.Server, URL: c.bound.URL, Epoch: c.bound.Epoch, Before: c.bound.Before, Over: b.over,
	}
}

// over ends the bindings that match.
func (s *Sandboxes) over(match func(*binding) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, b := range s.bindings {
		if match(b) {
			b.end()
			delete(s.bindings, id)
		}
	}
}

// changes is closed by the next change of a claim that the watch sees.
func (s *Sandboxes) changes(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.news[name]
	if c == nil {
		c = make(chan struct{})
		s.news[name] = c
	}
	return c
}

// changed has who waits for a change of a claim look again.
func (s *Sandboxes) changed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.news[name]; c != nil {
		close(c)
		delete(s.news, name)
	}
}

// page is how many objects are listed at once.
const page = 500

// list tells the claims of the fleet as they are at one version of the store, and returns it.
func (s *Sandboxes) list(ctx context.Context, tell func(claim)) (at string, err error) {
	o := metav1.ListOptions{LabelSelector: fleetLabel + "=" + s.o.Fleet, Limit: page}
	for {
		list, err := s.claims().List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if c, err := read(&list.Items[i]); err == nil { // of one that cannot be read its user is told
				tell(c)
			}
		}
		if list.GetContinue() == "" {
			return list.GetResourceVersion(), nil
		}
		o.Continue = list.GetContinue()
	}
}

// watching sees claims change, until ctx ends.
func (s *Sandboxes) watching(ctx context.Context) {
	for wait := firstPause; ctx.Err() == nil; {
		if s.watch(ctx) {
			wait = firstPause
		}
		awaits(ctx, nil, &wait)
	}
}

// watch sees claims change, until it breaks off. It reports whether it has begun.
func (s *Sandboxes) watch(ctx context.Context) bool {
	known := s.known()
	seen := map[string]claim{}
	at, err := s.list(ctx, func(c claim) { seen[c.name] = c })
	if err != nil {
		return false
	}
	s.over(func(b *binding) bool { // of those of before the list
		c, is := seen[b.name]
		return known[b] && (!is || outdated(b, c))
	})
	for name := range seen {
		s.changed(name)
	}
	changes, err := retrywatch.NewRetryWatcherWithContext(ctx, at, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = fleetLabel + "=" + s.o.Fleet
		return s.claims().Watch(ctx, o)
	}})
	if err != nil {
		return false
	}
	defer func() {
		changes.Stop()
		<-changes.Done()
	}()
	for e := range changes.ResultChan() {
		u, is := e.Object.(*unstructured.Unstructured)
		if !is || e.Type == watch.Error || e.Type == watch.Bookmark {
			if e.Type == watch.Error && !apierrors.IsTimeout(apierrors.FromObject(e.Object)) {
				return true
			}
			continue
		}
		s.sees(e.Type, u)
	}
	return true
}

// sees goes by one change.
func (s *Sandboxes) sees(kind watch.EventType, u *unstructured.Unstructured) {
	name := u.GetName()
	if kind == watch.Deleted {
		uid := string(u.GetUID())
		s.over(func(b *binding) bool { return b.uid == uid })
	} else if c, err := read(u); err == nil {
		s.over(func(b *binding) bool { return b.name == name && outdated(b, c) })
	}
	s.changed(name)
}

// outdated reports whether a claim shows that a binding of its name is over. What the watch says
// may be of before the binding, which has a later epoch then.
func outdated(b *binding, c claim) bool {
	return b.epoch < max(c.bound.Epoch, c.first)
}

// known are the bindings that there are.
func (s *Sandboxes) known() map[*binding]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[*binding]bool, len(s.bindings))
	for _, b := range s.bindings {
		all[b] = true
	}
	return all
}
