package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/internal/file"
)

// Format is the version of the files that Write makes.
const Format = 1

// ErrFormat is matched by Read's error about a file of another format.
var ErrFormat = errors.New("not a file of benchmark results")

// File is what one run of the suite came to.
type File struct {
	Format  int       `json:"format"`
	Made    time.Time `json:"made"`
	Commit  string    `json:"commit,omitempty"`
	Machine Machine   `json:"machine"`
	// Command says how it was made.
	Command string `json:"command,omitempty"`
	// Plan is what the suite was asked for, by which a run is resumed.
	Plan    Plan     `json:"plan"`
	Results []Result `json:"results"`
	// Missing names the steps that were planned and have no result here, each
	// "name, round n": the run was interrupted, or is not at its end yet.
	Missing []string `json:"missing,omitempty"`
	// LeftOut says which peers are not installed on this machine.
	LeftOut []string `json:"left_out,omitempty"`
}

// Plan is what decides the steps of a run and their order.
type Plan struct {
	Full bool   `json:"full,omitempty"`
	Only string `json:"only,omitempty"`
	// Compared leaves out what is measured too seldom to be compared.
	Compared bool `json:"compared,omitempty"`
	// Rounds is how often what is compared is repeated, 0 when the suite's default.
	Rounds int     `json:"rounds,omitempty"`
	Plant  float64 `json:"plant,omitempty"`
	// Turns says that rounds were measured in turns with those of another file, so that
	// a round here and the same one there saw the same machine.
	Turns bool   `json:"turns,omitempty"`
	Seed  uint64 `json:"seed,omitempty"`
}

// Result is one round of one scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Backend  string `json:"backend"`
	Sessions int    `json:"sessions"`
	// Round counts from 1.
	Round int           `json:"round"`
	At    time.Time     `json:"at"`
	Took  time.Duration `json:"took_ns"`
	// LoadBefore and LoadAfter are the machine's load averages over one minute,
	// negative where it has none.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
	// Floor is what `exec` of the bare pipe took in the same round, in us; 0 when
	// it was not measured. Comparisons divide by it: what slows the whole machine
	// slows the floor too.
	Floor   float64                 `json:"floor_us,omitempty"`
	Metrics []Metric                `json:"metrics"`
	Curves  map[string]load.Summary `json:"curves,omitempty"`
	// Series are values over the time of the round.
	Series []Series `json:"series,omitempty"`
	// Notes say what a reader of the figures has to know.
	Notes []string `json:"notes,omitempty"`
	// Error says why the round failed; its metrics do not count then.
	Error string `json:"error,omitempty"`
}

// Series is one value over time.
type Series struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// At is in seconds from the start of the load; Value has as many members.
	At    []float64 `json:"at_s"`
	Value []float64 `json:"value"`
}

// Better says which way a metric improves.
type Better string

// The directions.
const (
	Less Better = "less"
	More Better = "more"
	// None is the direction of a fact that is not judged: how many calls there
	// were, how late the generator was.
	None Better = "none"
)

// Metric is one number of a round.
type Metric struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"`
	Better Better  `json:"better"`
}

// Metric returns the value of the metric with this name.
func (r Result) Metric(name string) (float64, bool) {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m.Value, true
		}
	}
	return 0, false
}

// Name is "scenario/backend/sessions".
func (r Result) Name() string { return fmt.Sprintf("%s/%s/%d", r.Scenario, r.Backend, r.Sessions) }

// Write writes the file to path by rename, and makes its folder.
func (f File) Write(path string) error {
	f.Format = Format
	data, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	return file.Write(path, append(data, '\n'), file.WriteOptions{Mode: 0o644})
}

// Writable says early whether Write could write path: a run is long.
func Writable(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".results-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(temp.Close(), os.Remove(temp.Name())); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// maxFile bounds a file of results, in bytes.
const maxFile = 256 << 20

// Read reads a file. The error matches ErrFormat when it has another format.
func Read(path string) (File, error) {
	data, err := file.Read(context.Background(), path, maxFile)
	if err != nil {
		return File{}, fmt.Errorf("read results: %w", err)
	}
	f, err := Parse(data)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Parse is Read of what a file holds.
func Parse(data []byte) (File, error) {
	var f File
	if err := json.Unmarshal(data, &f); err != nil {
		return File{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if f.Format != Format {
		return File{}, fmt.Errorf("%w of format %d: it says %d", ErrFormat, Format, f.Format)
	}
	return f, nil
}
