package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/toolcheck"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// checkFile holds how the last validations of a folder of tools went.
const checkFile = ".coppice-checks.json"

// maxKept bounds a file that is kept in a folder of tools, in bytes.
const maxKept = 16 << 20

// keepChecks is how long a validation counts.
const keepChecks = 30 * 24 * time.Hour

// validation is what is kept of a report.
type validation struct {
	Overall string    `json:"overall"`
	Stamp   string    `json:"stamp"` // of the files that were validated
	At      time.Time `json:"at"`
}

// Validated returns how the last validation of each tool went: pass, warn or
// fail, by id. Tools that have changed since, or were validated more than 30 days
// ago, are not there.
func (b *Box) Validated(entries []toolspec.Entry) (map[string]string, error) {
	all, err := readChecks(b.o.Dir)
	valid := map[string]string{}
	for _, e := range entries {
		if v, there := all[e.ID]; there && v.Stamp == e.Stamp && time.Since(v.At) < keepChecks {
			valid[e.ID] = v.Overall
		}
	}
	return valid, err
}

func readChecks(dir string) (map[string]validation, error) {
	all := map[string]validation{}
	data, err := file.Read(context.Background(), filepath.Join(dir, checkFile), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return map[string]validation{}, fmt.Errorf("read the validations in %s: %w; remove the file to discard them", filepath.Join(dir, checkFile), err)
	}
	return all, nil
}

// keepCheck remembers a report on the tool of an entry.
func (b *Box) keepCheck(ctx context.Context, e toolspec.Entry, r toolcheck.Report) error {
	return b.change(ctx, func() error {
		all, err := readChecks(b.o.Dir)
		if err != nil {
			return err
		}
		for id, v := range all {
			if time.Since(v.At) >= keepChecks {
				delete(all, id)
			}
		}
		all[e.ID] = validation{Overall: string(r.Overall), Stamp: e.Stamp, At: r.Timestamp}
		return saveBeside(b.o.Dir, checkFile, all)
	})
}

// saveBeside rewrites a file of ours in a folder of tools, whole or not at all.
func saveBeside(dir, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return file.Write(filepath.Join(dir, name), append(data, '\n'), file.WriteOptions{Durable: true})
}
