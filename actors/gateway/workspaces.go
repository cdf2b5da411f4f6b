package gateway

import (
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// errWorkspace ends the kernels of a workspace that ends. It is an errClosed.
var errWorkspace = fmt.Errorf("%w", errClosed)

// ending is a workspace whose kernels end.
type ending struct {
	work supervisor.Work
	left map[string]bool // the kernels that are not gone yet
}

// endWorkspace ends the kernels of a workspace, and those that serve one call of it. The
// answer comes when they are gone.
func (h *handler) endWorkspace(s *supervisor.Supervisor, w supervisor.Work, m messages.EndWorkspace) {
	e := ending{w, map[string]bool{}}
	for child := range s.Children() {
		if key, ok := messages.KeyOfCall(child.Key); child.Kind == KindKernel && ok && key.Workspace == m.Workspace {
			e.left[child.Key] = true
		}
	}
	h.ending = append(h.ending, e)
	if h.o.Hibernation != nil {
		h.o.Hibernation.ForgetWorkspace(m.Workspace)
	}
	closed := fmt.Errorf("%w: %s", errWorkspace, m.Reason)
	for child := range e.left {
		h.close(s, child, closed)
	}
	h.kernelGone("")
}

// kernelGone answers those who wait for the end of the last kernel of a workspace.
func (h *handler) kernelGone(child string) {
	h.ending = slices.DeleteFunc(h.ending, func(e ending) bool {
		delete(e.left, child)
		if len(e.left) == 0 {
			e.work.Settle(true)
		}
		return len(e.left) == 0
	})
}
