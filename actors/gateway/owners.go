package gateway

import "github.com/coppice-run/coppice/internal/owned"

// owners says which owners use which session. Calls without an owner hold no session.
type owners map[string]*users // by child

// users are those of one session.
type users struct {
	// called have made calls, served or not; without "".
	called map[string]struct{}
	// served are those whose calls its kernel has served, and those of what it was restored
	// from; with "". The kernel adds to it.
	served *owned.Owners
}

func (o owners) of(child string) *users {
	u := o[child]
	if u == nil {
		u = &users{called: map[string]struct{}{}, served: new(owned.Owners)}
		o[child] = u
	}
	return u
}

func (o owners) add(child, owner string) { o.of(child).called[owner] = struct{}{} }

// release takes an owner out of all sessions and returns those that have no owner
// left.
func (o owners) release(owner string) []string {
	var alone []string
	for child, u := range o {
		others, had := false, false
		all := u.served.List()
		for name := range u.called {
			all = append(all, name)
		}
		for _, name := range all {
			switch name {
			case owner:
				had = true
			case "":
			default:
				others = true
			}
		}
		if !had || owner == "" {
			continue
		}
		delete(u.called, owner)
		u.served.Remove(owner)
		if !others {
			alone = append(alone, child)
		}
	}
	return alone
}

func (o owners) forget(child string) { delete(o, child) }

// ended notes that a session's kernel is no more: who used that is not known any more,
// and who waits for the next one is.
func (o owners) ended(child string, waits bool) {
	switch u := o[child]; {
	case !waits:
		o.forget(child)
	case u != nil:
		u.served = new(owned.Owners)
	}
}
