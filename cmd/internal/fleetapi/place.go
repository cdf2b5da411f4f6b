package fleetapi

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/internal/pause"
)

// labelFront is the label of a node that has no sessions, which only sends on.
const labelFront = "coppice/front"

// labels are those of this node, as others see them.
func (n *Node) labels() map[string]string {
	if !n.o.Front {
		return n.o.Labels
	}
	all := map[string]string{labelFront: "true"}
	maps.Copy(all, n.o.Labels)
	return all
}

// HeaderLabels says, in a request, which labels the node must have at which something begins for it:
// gpu=yes,zone=a. What is there already stays where it is.
const HeaderLabels = "Coppice-Labels"

// ParseLabels reads labels: name=value, with commas between.
func ParseLabels(text string) (map[string]string, error) {
	all := map[string]string{}
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, ok := strings.Cut(one, "=")
		if !ok || !labelText.MatchString(name) || !labelText.MatchString(value) {
			return nil, fmt.Errorf("%.80q is no label; one is like gpu=yes, of letters, digits, dots, dashes and underscores", one)
		}
		all[name] = value
	}
	return all, nil
}

var labelText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// where is at which nodes something may begin.
type where struct {
	avoid []string          // nodes that did not answer
	want  map[string]string // labels
}

// wanted is where what a request is about may begin.
func wanted(r *http.Request) (where, error) {
	want, err := ParseLabels(r.Header.Get(HeaderLabels))
	if err != nil {
		return where{}, Refusal(http.StatusBadRequest, "bad_request", HeaderLabels+": "+err.Error(), "", 0)
	}
	return where{want: want}, nil
}

// has reports whether labels are those that are wanted, or more.
func (w where) has(labels map[string]string) bool {
	for name, value := range w.want {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// takes reports whether a node has sessions at all.
func (p *peer) takes() bool { return p.Labels[labelFront] == "" }

// candidate is a node that a key may go to.
type candidate struct {
	id       string
	weight   uint64
	sessions int
}

// choose says at which node a key is to begin that nobody has: the less loaded of the two that
// a rendezvous hash puts first among those that are up, so that all nodes choose alike, and one
// that comes or goes moves few keys. "" when there is none.
func (n *Node) choose(key string, at where) string { return pick(n.candidates(key, at)) }

// first is choose with no look at how much there is to do: it is the same for all who see the same nodes.
func (n *Node) first(key string, at where) string {
	all := n.candidates(key, at)
	for i := range all {
		all[i].sessions = 0
	}
	return pick(all)
}

// candidates are the nodes that are up and take sessions.
func (n *Node) candidates(key string, at where) (all []candidate) {
	for _, p := range n.others() {
		if p.State == fleet.Up && p.takes() && !slices.Contains(at.avoid, p.ID) && at.has(p.Labels) {
			all = append(all, candidate{id: p.ID, weight: weight(p.ID, key), sessions: p.Load.Sessions})
		}
	}
	if me := n.ID(); me != "" && !n.o.Front && !n.isDraining() && at.has(n.o.Labels) {
		all = append(all, candidate{id: me, weight: weight(me, key), sessions: n.owned()})
	}
	return all
}

// pick returns the less loaded of the two candidates of most weight, the heavier where they are alike.
func pick(all []candidate) string {
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	switch {
	case len(all) == 0:
		return ""
	case len(all) > 1 && all[1].sessions < all[0].sessions:
		return all[1].id
	}
	return all[0].id
}

// weight is that of a node for a key.
func weight(node, key string) uint64 {
	sum := sha256.Sum256([]byte(node + "\x00" + key))
	return binary.BigEndian.Uint64(sum[:])
}

// begins says at which node what nobody has begins, and whether that is to be known: named is
// the node that the request asks for, which claims it itself.
func (n *Node) begins(ctx context.Context, m *fleet.Member, t about.Target, named bool, at where) (node string, err error) {
	if named || !n.o.Spread && !n.o.Front && len(at.want) == 0 {
		if n.o.Front {
			return "", n.noSessions()
		}
		return m.ID(), nil
	}
	id, _, err := m.Owner(ctx, t.Key.ID())
	if err != nil || id != "" {
		return id, err
	}
	if id = n.chosen(ctx, n.choose, t.Key.ID(), at); id == "" {
		return "", n.noNode(at)
	}
	return id, nil
}

// chosen is what choose says, which is asked again for a moment while no node takes anything: those of
// an update come one by one.
func (n *Node) chosen(ctx context.Context, choose func(key string, at where) string, key string, at where) string {
	ctx, cancel := context.WithTimeout(ctx, n.o.TTL/4)
	defer cancel()
	for wait := firstPause; ; {
		if id := choose(key, at); id != "" || len(at.avoid) > 0 || !pause.Wait(ctx, &wait) {
			return id
		}
	}
}

// noNode is the answer while no node takes anything.
func (n *Node) noNode(at where) error {
	if len(at.want) > 0 {
		return Refusal(http.StatusServiceUnavailable, "no_node", "no node of the fleet that has the labels of "+HeaderLabels+" takes sessions at the moment: nothing was begun", "start one with --fleet-label, or ask for other labels", n.o.TTL/4)
	}
	return Refusal(http.StatusServiceUnavailable, "no_node", "no node of the fleet takes sessions at the moment: nothing was begun", "start one, or send it again when one is up", n.o.TTL/4)
}

// noSessions is the answer of a front to who wants it to have a session.
func (n *Node) noSessions() error {
	return Refusal(http.StatusServiceUnavailable, "no_sessions", "this node sends on what others have, and has no sessions: nothing was begun", "ask without the header "+HeaderNode, 0)
}
