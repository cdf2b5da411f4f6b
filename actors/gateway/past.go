package gateway

import "github.com/coppice-run/coppice/messages"

// past remembers why the last kernel of a key ended, for at most max keys; the
// oldest are forgotten first.
type past struct {
	max   int
	exits map[string]messages.Exit
	order []string
}

func newPast(limit int) *past {
	return &past{max: limit, exits: map[string]messages.Exit{}}
}

func (p *past) put(key string, e messages.Exit) {
	if _, ok := p.exits[key]; !ok {
		p.order = append(p.order, key)
	}
	p.exits[key] = e
	for len(p.exits) > p.max {
		delete(p.exits, p.order[0])
		p.order = p.order[1:]
	}
}

func (p *past) get(key string) *messages.Exit {
	e, ok := p.exits[key]
	if !ok {
		return nil
	}
	return &e
}

func (p *past) drop(key string) {
	if _, ok := p.exits[key]; !ok {
		return
	}
	delete(p.exits, key)
	for i, k := range p.order {
		if k == key {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}
