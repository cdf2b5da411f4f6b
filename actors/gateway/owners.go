package gateway

// owners says which owners use which session. A session whose calls had no owner is
// not in it.
type owners map[string]map[string]struct{} // child to owners

func (o owners) add(child, owner string) {
	if o[child] == nil {
		o[child] = map[string]struct{}{}
	}
	o[child][owner] = struct{}{}
}

// release takes an owner out of all sessions and returns those that have no owner
// left.
func (o owners) release(owner string) []string {
	var alone []string
	for child, list := range o {
		if _, ok := list[owner]; !ok {
			continue
		}
		delete(list, owner)
		if len(list) == 0 {
			alone = append(alone, child)
		}
	}
	return alone
}

func (o owners) forget(child string) { delete(o, child) }
