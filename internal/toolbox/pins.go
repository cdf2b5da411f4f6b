package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/coppice-run/coppice/internal/file"
)

// pinFile holds the pins of a folder of tools, so that they outlive a host.
const pinFile = ".coppice-pins.json"

type pinned struct {
	Pinned []string `json:"pinned"`
}

// Pinned returns the tools that are pinned for hosts that are started later.
func (b *Box) Pinned() ([]string, error) { return readPins(b.o.Dir) }

// Pin pins a tool for hosts that are started later, or ends that. The error is a
// *messages.ToolError when a tool to be pinned does not exist, or is broken.
//
// apply makes the same change where pins hold already, and returns what was there; it
// is called again with that when the file cannot be written. No other change of the
// pins of this folder comes in between. nil: there is no such place.
func (b *Box) Pin(ctx context.Context, id string, on bool, apply func(on bool) (was bool, err error)) error {
	if _, err := b.Find(ctx, id); err != nil && on {
		return err
	}
	if apply == nil {
		apply = func(bool) (bool, error) { return false, nil }
	}
	return b.change(ctx, func() error {
		ids, err := readPins(b.o.Dir)
		if err != nil {
			return err
		}
		was, err := apply(on)
		if err != nil {
			return err
		}
		if err := savePin(b.o.Dir, ids, id, on); err != nil {
			_, undone := apply(was)
			return errors.Join(err, undone)
		}
		return nil
	})
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
		return nil, fmt.Errorf("read the pins of tools in %s: %w; remove the file to discard them", filepath.Join(dir, pinFile), err)
	}
	return p.Pinned, nil
}

// savePin writes the file, whole or not at all, if the change of one tool changes ids.
func savePin(dir string, ids []string, id string, on bool) error {
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
