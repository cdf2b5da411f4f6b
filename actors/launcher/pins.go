package launcher

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-run/coppice/messages"
)

// Pin exempts a tool from making room for others, or ends the exemption; it is
// still ended when it is not used. A pin is kept in the folder of tools, and
// holds for hosts that are started later; another launcher of the folder that runs
// does not hear of it. The end of ctx ends only the wait for others that change pins.
func (l *Launcher) Pin(ctx context.Context, id string, on bool) error {
	return l.box.Pin(ctx, id, on, func(on bool) (was bool, err error) {
		// A change that is half made would leave this launcher and the file apart.
		return askTools[bool](context.WithoutCancel(ctx), l, messages.ToolPin{Tool: id, Pinned: on})
	})
}

// restorePins pins what was pinned, and what asks for it in its tool.json.
func (l *Launcher) restorePins(ctx context.Context) error {
	ids, err := l.box.Pinned()
	entries, listErr := l.box.List(ctx)
	for _, e := range entries {
		if e.Tool != nil && e.Tool.PinnedWarm && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		if _, pinErr := askTools[bool](ctx, l, messages.ToolPin{Tool: id, Pinned: true}); pinErr != nil {
			return pinErr
		}
	}
	return errors.Join(err, listErr)
}
