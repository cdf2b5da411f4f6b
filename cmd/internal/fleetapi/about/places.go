package about

// Places are where executions are that a server has sent on: what was said of each id, for the last
// so many. The zero value is empty. It has no lock.
type Places struct {
	places map[string]string
	order  []string
}

const mostPlaced = 8192

// Put notes where an execution is.
func (p *Places) Put(execution, place string) {
	if execution == "" || p.places[execution] == place {
		return
	}
	if p.places == nil {
		p.places = map[string]string{}
	}
	if _, known := p.places[execution]; !known {
		p.order = append(p.order, execution)
	}
	p.places[execution] = place
	for len(p.order) > mostPlaced {
		delete(p.places, p.order[0])
		p.order = p.order[1:]
	}
}

// Of is where an execution is, "" when it is not known.
func (p *Places) Of(execution string) string { return p.places[execution] }
