package launcher

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-run/coppice/messages"
)

// Pin exempts a tool from making room for others, or ends the exemption; it is
// still ended when it is not used. A pin is kept in the folder of tools, and
// holds for hosts that are started later.
func (l *Launcher) Pin(ctx context.Context, id string, on bool) error {
	if _, err := l.box.Find(ctx, id); err != nil && on {
		return err
	}
	if _, err := askTools[bool](ctx, l, messages.ToolPin{Tool: id, Pinned: on}); err != nil {
		return err
	}
	l.pins.Lock()
	defer l.pins.Unlock()
	return l.box.Pin(ctx, id, on)
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
