package ipynb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/internal/recording"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/sinks"
)

// Options say what is recorded, and where. The zero value of each optional
// field is its default.
type Options struct {
	// Path is the notebook. Required.
	Path string
	// Session is the one session to record. nil: all, in the order in which
	// their cells begin.
	Session *messages.SessionKey
	// MaxOutput is how many bytes of output a cell may leave; what it shows
	// beyond is left out, and the cell says so. 0: 4 MiB.
	MaxOutput int64
	// MaxBytes is how large a notebook may get before another one is begun. 0:
	// 64 MiB.
	MaxBytes int64
}

// Recorder writes a notebook. Close ends it.
type Recorder struct {
	o Options

	mu       sync.Mutex
	file     *notebook.File // nil: to be opened again
	outputs  *notebook.Recorder
	part     int   // of the notebooks that were begun, from 1
	size     int64 // about how large the notebook is
	prompt   int
	recorded int // cells
	failed   error
	closed   bool
}

// Open makes a recorder. It reads the notebook, and makes none before there is
// something to record; that it can be written is found out at once.
func Open(o Options) (*Recorder, error) {
	if o.Path == "" {
		return nil, errors.New("record a notebook: no path")
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 4 << 20
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	r := &Recorder{o: o, part: 1}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("record a notebook: %w", err)
	}
	if err := r.file.CheckSave(); err != nil {
		return nil, fmt.Errorf("record a notebook: %w", err)
	}
	return r, nil
}

// path is the notebook that is written now.
func (r *Recorder) path() string {
	if r.part == 1 {
		return r.o.Path
	}
	ext := filepath.Ext(r.o.Path)
	return strings.TrimSuffix(r.o.Path, ext) + "-" + strconv.Itoa(r.part) + ext
}

// open reads the notebook, or the first of its parts that has room. The mutex is
// held, or r is new.
func (r *Recorder) open() error {
	for {
		f, err := notebook.OpenOrNew(context.Background(), r.path()) // what it reads is bounded
		if err != nil {
			return err
		}
		size := int64(len(f.Bytes()))
		if size >= r.o.MaxBytes {
			r.part++
			continue
		}
		if !f.Exists() {
			for _, set := range []struct {
				value any
				path  []string
			}{
				{map[string]string{"display_name": "Python 3", "language": "python", "name": "python3"}, []string{"kernelspec"}},
				{"python", []string{"language_info", "name"}},
			} {
				if err := f.SetNotebookMetadata(set.value, set.path...); err != nil {
					return err
				}
			}
		}
		r.prompt = 0
		for _, c := range f.Cells() {
			count, _ := c.ExecutionCount()
			r.prompt = max(r.prompt, count)
		}
		r.file, r.outputs, r.size = f, notebook.NewRecorder(f.Document), size
		return nil
	}
}

// Attachment connects the recorder to all calls of a host, without loss.
func (r *Recorder) Attachment() sinks.Attachment {
	return sinks.Attachment{Name: "ipynb", For: r.For}
}

// For returns the sink of one call, nil when its session is not recorded. Its
// Close does not close the recorder.
func (r *Recorder) For(_ context.Context, exec messages.Execute) sinks.Sink {
	if r.o.Session != nil && exec.Key != *r.o.Session {
		return nil
	}
	return &call{recorder: r, exec: exec}
}

// Path returns the notebook that is written now, and how many cells were
// recorded in all.
func (r *Recorder) Path() (path string, cells int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path(), r.recorded
}

// Err is the first failure that kept something from being recorded, nil if there was none.
// A call does not fail with its recording: this is where who made the recorder sees it.
// Everything is in it once the host has ended.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// note keeps a failure for Err, and returns it. The mutex is held.
func (r *Recorder) note(err error) error {
	if r.failed == nil && !errors.Is(err, sinks.ErrClosed) { // who closed it knows
		r.failed = err
	}
	return err
}

// Close ends the recording. Sinks that still get events fail then.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// begin appends a cell. The mutex is held.
func (r *Recorder) begin(source, title string) (*cell, error) {
	if r.closed {
		return nil, sinks.ErrClosed
	}
	if r.file == nil || r.size >= r.o.MaxBytes {
		if err := r.open(); err != nil {
			r.file = nil
			return nil, fmt.Errorf("record a cell: %w", err)
		}
	}
	spec := notebook.NewCell{Source: source}
	if title != "" {
		meta, err := titled(title)
		if err != nil {
			return nil, err
		}
		spec.Metadata = meta
	}
	if _, err := r.file.Append(spec); err != nil {
		return nil, fmt.Errorf("record a cell: %w", err)
	}
	record, err := recording.Begin(r.outputs, notebook.At(-1), r.prompt+1, r.o.MaxOutput)
	if err != nil {
		return nil, fmt.Errorf("record a cell: %w", err)
	}
	r.prompt++
	r.recorded++
	r.size += int64(len(source))
	return &cell{Cell: record, file: r.file}, nil
}

// save writes the notebook. When that fails it is read again for the next call.
// The mutex is held.
func (r *Recorder) save(ctx context.Context, f *notebook.File) error {
	if f != r.file {
		return nil // it was given up, or is full and was saved
	}
	if _, err := f.Save(ctx); err != nil {
		r.file = nil
		return fmt.Errorf("record in %s: %w", r.path(), err)
	}
	return nil
}
