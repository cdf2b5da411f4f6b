package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
)

// pinFile holds the pins of a folder of tools, so that they outlive a host.
const pinFile = ".coppice-pins.json"

type pinned struct {
	Pinned []string `json:"pinned"`
}

// Pin exempts a tool from making room for others, or ends the exemption; it is
// still ended when nobody uses it. A pin is kept in the folder of tools, and
// holds for hosts that are started later.
func (t *Launcher) Pin(ctx context.Context, id string, on bool) error {
	if _, err := t.catalogue.Find(ctx, id); err != nil && on {
		return err
	}
	if _, err := askTools[bool](ctx, t, messages.ToolPin{Tool: id, Pinned: on}); err != nil {
		return err
	}
	t.pins.Lock()
	defer t.pins.Unlock()
	return savePin(t.o.Dir, id, on)
}

// restorePins pins what was pinned, and what asks for it in its tool.json.
func (t *Launcher) restorePins(ctx context.Context) error {
	ids, err := readPins(t.o.Dir)
	entries, listErr := t.catalogue.List(ctx)
	for _, e := range entries {
		if e.Tool != nil && e.Tool.PinnedWarm && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		if _, pinErr := askTools[bool](ctx, t, messages.ToolPin{Tool: id, Pinned: true}); pinErr != nil {
			return pinErr
		}
	}
	return errors.Join(err, listErr)
}

func readPins(dir string) ([]string, error) {
	data, err := file.Read(context.Background(), filepath.Join(dir, pinFile), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pins of tools: %w", err)
	}
	var p pinned
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read the pins of tools in %s: %w; remove the file to be rid of them", filepath.Join(dir, pinFile), err)
	}
	return p.Pinned, nil
}

// savePin writes the file anew, whole or not at all.
func savePin(dir, id string, on bool) error {
	ids, err := readPins(dir)
	if err != nil {
		return err
	}
	if slices.Contains(ids, id) == on {
		return nil
	}
	if on {
		ids = append(ids, id)
		slices.Sort(ids)
	} else {
		ids = slices.DeleteFunc(ids, func(o string) bool { return o == id })
	}
	return saveBeside(dir, pinFile, pinned{ids})
}
