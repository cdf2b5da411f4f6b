package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// pinFile holds the pins of a folder of tools, so that they outlive a host.
const pinFile = ".coppice-pins.json"

type pinned struct {
	Pinned []string `json:"pinned"`
}

// Pinned returns the tools that are pinned for hosts that are started later.
func (b *Box) Pinned() ([]string, error) { return readPins(b.o.Dir) }

// Pin pins a tool for hosts that are started later, or ends that. The error is a
// *messages.ToolError when a tool that shall be pinned is not there, or is broken.
func (b *Box) Pin(ctx context.Context, id string, on bool) error {
	if _, err := b.Find(ctx, id); err != nil && on {
		return err
	}
	return savePin(b.o.Dir, id, on)
}

func readPins(dir string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, pinFile))
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
