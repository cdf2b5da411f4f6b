package together

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/messages"
)

// silent is what the tree has in place of a node that gave no answer.
const silent = "it gave no answer"

// Tree is one tree, whose root has the nodes for children. own is that of the node me, and others are
// those of the others, nil for one that gave none. The error is about own.
func Tree(me string, own []byte, others map[string][]byte) (any, error) {
	var mine messages.Node
	if err := json.Unmarshal(own, &mine); err != nil {
		return nil, err
	}
	root := messages.Node{Name: "fleet", Kind: "fleet", State: mine.State, Since: mine.Since, StartedAt: mine.StartedAt, Epoch: 1, Busy: mine.Busy}
	mine.Name, mine.Busy = me, nil
	root.Children = append(root.Children, mine)
	for id, data := range others {
		other := messages.Node{Kind: "node", State: messages.ChildSuspended, Epoch: 1, Detail: silent}
		if data != nil {
			var told messages.Node
			if json.Unmarshal(data, &told) == nil {
				other = told
			}
		}
		other.Name, other.Busy = id, nil
		root.Children = append(root.Children, other)
	}
	slices.SortFunc(root.Children, func(a, b messages.Node) int { return cmp.Compare(a.Name, b.Name) })
	return root, nil
}

// Since is from when others are to tell what they have counted, for the overview own.
func Since(own []byte) time.Time {
	var o client.Overview
	_ = json.Unmarshal(own, &o) // then it is from the beginning
	if len(o.Samples) == 0 {
		return o.At
	}
	return o.Samples[0].At.Add(-time.Duration(o.StepSeconds * float64(time.Second)))
}

// Overview is one overview, whose samples have the numbers of own. The arguments are those of Tree.
func Overview(_ string, own []byte, others map[string][]byte) (any, error) {
	var mine client.Overview
	if err := json.Unmarshal(own, &mine); err != nil {
		return nil, err
	}
	all := map[string]client.Overview{}
	for id, data := range others {
		var o client.Overview
		switch {
		case data == nil:
			mine.Problems = append(mine.Problems, client.Problem{
				Level: client.LevelBad, Kind: "server", What: "The node " + id + " gave no answer.",
				Do: "Calls of its sessions wait until it answers, or is known to be dead.",
			})
		case json.Unmarshal(data, &o) == nil:
			all[id] = o
		}
	}
	return vitals.Together(mine, all), nil
}
