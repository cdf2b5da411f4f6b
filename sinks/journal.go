package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/file/lines"
	"github.com/coppice-run/coppice/messages"
)

// JournalOptions say where a [Journal] is. The zero value of each optional field
// is its default.
type JournalOptions struct {
	// Path is the file that is written to. Required.
	Path string
	// MaxBytes is when it is moved to Path.1, and that to Path.2, and so on. 0:
	// 16 MiB.
	MaxBytes int64
	// Keep is how many moved files are kept. 0: 3.
	Keep int
	// Now is the clock of the entries. nil: time.Now.
	Now func() time.Time
}

// Journal writes the events of all calls to a file, one JSON object a line:
//
//	{"at":"2026-01-02T03:04:05.678Z","exec":"…","session":"…","cwd":"…","event":{"seq":1,"cell":0,"type":"stdout",…}}
//
// The file has mode 0600. A line is never split over two files, and lines of a
// program that wrote before stay. Any goroutine may use it.
type Journal struct {
	o JournalOptions

	file *lines.File

	mu  sync.Mutex
	buf []byte // guarded by mu
}

// OpenJournal opens the journal; its folder is made with mode 0700.
func OpenJournal(o JournalOptions) (*Journal, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	file, err := lines.Open(lines.Options{Path: o.Path, MaxBytes: o.MaxBytes, Keep: o.Keep})
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{o: o, file: file}, nil
}

// Attachment connects the journal to all calls of a hub, without loss.
func (j *Journal) Attachment() Attachment { return Attachment{Name: "journal", For: j.For} }

// For returns the sink of one call. Its Close does not close the journal.
func (j *Journal) For(_ context.Context, exec messages.Execute) Sink {
	head, err := json.Marshal(struct {
		Exec    string `json:"exec"`
		Session string `json:"session"`
		Cwd     string `json:"cwd"`
	}{exec.ID, exec.Key.Session, exec.Key.Cwd})
	return &journalSink{journal: j, head: head, err: err}
}

// write adds one line.
func (j *Journal) write(head []byte, e messages.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := j.buf[:0]
	line = append(line, `{"at":"`...)
	line = j.o.Now().UTC().AppendFormat(line, "2006-01-02T15:04:05.000Z07:00")
	line = append(line, `",`...)
	line = append(line, head[1:len(head)-1]...)
	line = append(line, `,"event":`...)
	line, err := messages.AppendEvent(line, e)
	if err != nil {
		return err
	}
	line = append(line, "}\n"...)
	if cap(line) <= keepLine {
		j.buf = line
	}
	switch err := j.file.Append(line); {
	case errors.Is(err, lines.ErrClosed):
		return ErrClosed
	case err != nil:
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close closes the file. Sinks that still get events fail then.
func (j *Journal) Close() error {
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

// journalSink is the sink of one call.
type journalSink struct {
	journal *Journal
	head    []byte
	err     error
}

func (s *journalSink) Consume(_ context.Context, e messages.Event) error {
	if s.err != nil {
		return s.err
	}
	return s.journal.write(s.head, e)
}

func (s *journalSink) Flush(context.Context) error { return nil }
func (s *journalSink) Close() error                { return nil }
