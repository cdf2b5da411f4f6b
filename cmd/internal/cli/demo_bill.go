package cli

import "github.com/coppice-run/coppice/cmd/internal/render"

// The promises of the demo, in the order in which they are kept.
const (
	promisedStreams  = "three sessions stream side by side, each in order"
	promisedRich     = "a table, a picture and data arrive as rich output"
	promisedRaise    = "a cell that raises is shown, later cells are not run, the session is kept"
	promisedLoss     = "a kernel that is killed is told as lost, within two seconds"
	promisedGrowth   = "it grows back once, by itself, with nothing of its old state"
	promisedEviction = "over the cap, the session that was not used for longest makes room"
	promisedNewcomer = "the new session runs, and the cap holds"
	promisedShutdown = "the tree shuts down clean, and no process is left"
)

// bill is the list of promises. Whatever did not happen has failed.
type bill struct {
	checks []render.Check
}

func newBill() *bill {
	b := &bill{}
	for _, what := range []string{
		promisedStreams, promisedRich, promisedRaise, promisedLoss, promisedGrowth, promisedEviction, promisedNewcomer, promisedShutdown,
	} {
		b.checks = append(b.checks, render.Check{What: what, Detail: "it did not happen"})
	}
	return b
}

// settle says whether a promise was kept, and what was seen.
func (b *bill) settle(what string, kept bool, seen string) {
	for i := range b.checks {
		if b.checks[i].What == what {
			b.checks[i].OK, b.checks[i].Detail = kept, seen
		}
	}
}

func (b *bill) kept() bool {
	for _, c := range b.checks {
		if !c.OK {
			return false
		}
	}
	return true
}
