// Package audit writes one line of JSON for each call of a host: what ran, for
// whom, how it ended and how long it took.
//
// # Guarantees
//
//   - A line is whole, in one file of mode 0600 in a folder of mode 0700.
//   - Code is written as a hash unless it is asked for; what looks like a secret
//     in it and in the reason is masked, and so are the values that the host
//     names.
//   - A file that would grow beyond its bound is moved to .1, that to .2, and so
//     on, and the oldest is removed.
//
// Any goroutine may use a Log.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/coppice-run/coppice/internal/file/lines"
	"github.com/coppice-run/coppice/internal/secret"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
)

// Options make a Log. The zero value of each optional field is its default.
type Options struct {
	// Path is the file. Required.
	Path string
	// Code says that the code itself is written, masked, and not its hash alone.
	Code bool
	// Secrets are values that are masked wherever they stand. Those of fewer than
	// 6 bytes are left out: they would mask half of everything.
	Secrets []string
	// MaxBytes is when the file is moved. 0: 16 MiB.
	MaxBytes int64
	// Keep is how many moved files are kept. 0: 3.
	Keep int
	// Now is the clock. nil: time.Now.
	Now func() time.Time
	// Logger hears of lines that could not be written: the call has happened all the
	// same. nil: it is not told.
	Logger *slog.Logger
}

// Log is an audit log.
type Log struct {
	o Options

	file *lines.File
}

// ErrClosed is returned by Write after Close.
var ErrClosed = errors.New("the audit log is closed")

// Open opens a log; what is there stays.
func Open(o Options) (*Log, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	file, err := lines.Open(lines.Options{Path: o.Path, MaxBytes: o.MaxBytes, Keep: o.Keep})
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Log{o: o, file: file}, nil
}

// line is one call.
type line struct {
	At         string           `json:"at"`
	Exec       string           `json:"exec"`
	Session    string           `json:"session"`
	Cwd        string           `json:"cwd"`
	Owner      string           `json:"owner,omitempty"`
	Backend    string           `json:"backend"`
	Outcome    messages.Outcome `json:"outcome"`
	State      messages.State   `json:"state"`
	DurationMS int64            `json:"duration_ms"`
	TimeoutMS  int64            `json:"timeout_ms,omitempty"`
	Reason     string           `json:"reason,omitempty"`
	Cells      []cell           `json:"cells"`
}

type cell struct {
	SHA256     string           `json:"sha256"`
	Bytes      int              `json:"bytes"`
	Code       string           `json:"code,omitempty"`
	Outcome    messages.Outcome `json:"outcome"`
	DurationMS int64            `json:"duration_ms"`
	Error      string           `json:"error,omitempty"`
}

// Write adds the line of one call. secrets are masked besides those of Options.
func (l *Log) Write(e messages.Execute, r messages.Result, secrets ...string) error {
	mask := masker(append(secrets, l.o.Secrets...))
	one := line{
		At: l.o.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"), Exec: e.ID, Session: e.Key.Session, Cwd: e.Key.Cwd, Owner: e.Owner, Backend: r.Backend,
		Outcome: r.Outcome, State: r.State, DurationMS: r.Duration.Milliseconds(), TimeoutMS: e.Timeout.Milliseconds(), Reason: mask(r.Reason), Cells: []cell{},
	}
	for i, c := range e.Cells {
		sum := sha256.Sum256([]byte(c.Code))
		k := cell{SHA256: hex.EncodeToString(sum[:]), Bytes: len(c.Code)}
		if l.o.Code {
			k.Code = mask(c.Code)
		}
		if i < len(r.Cells) {
			k.Outcome, k.DurationMS = r.Cells[i].Outcome, r.Cells[i].DurationMS
			if d := r.Cells[i].Error; d != nil {
				k.Error = d.Name // its message may hold what the code read
			}
		}
		one.Cells = append(one.Cells, k)
	}
	data, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	switch err := l.file.Append(append(data, '\n')); {
	case errors.Is(err, lines.ErrClosed):
		return ErrClosed
	case err != nil:
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

// Attachment makes the log a sink of all calls of a host, in Options.Sinks or by
// Options.Audit: a line is written before the call's result is handed out. Values of
// a call's environment that package secret knows are masked.
func (l *Log) Attachment() sinks.Attachment {
	return sinks.Attachment{Name: "audit", Final: true, For: func(_ context.Context, e messages.Execute) sinks.Sink { return &call{log: l, exec: e} }}
}

// call is the sink of one call. It belongs to an actor of the hub.
type call struct {
	log  *Log
	exec messages.Execute
}

// Consume writes the line when the result comes; the other events say nothing that
// it has not.
func (c *call) Consume(_ context.Context, e messages.Event) error {
	final, ok := e.(messages.Final)
	if !ok {
		return nil
	}
	var secrets []string
	for _, env := range []map[string]string{c.exec.Env, c.exec.CallEnv} {
		for name, value := range env {
			if secret.Variable(name, value) {
				secrets = append(secrets, value)
			}
		}
	}
	err := c.log.Write(c.exec, final.Result, secrets...)
	if err != nil {
		c.log.o.Logger.Error("the audit log could not be written", "exec", c.exec.ID, "err", err)
	}
	return nil // it was reported; a second try would write half a line twice
}

// Flush does nothing: a line is in the file when it was consumed.
func (c *call) Flush(context.Context) error { return nil }

// Close does nothing: the file is the log's.
func (c *call) Close() error { return nil }

// Close closes the file. It may be called more than once.
func (l *Log) Close() error { return l.file.Close() }

// leastMasked is how long a value is at least that is masked wherever it stands.
const leastMasked = 6

// masker returns a function that masks secrets in a text: the given values, and
// what gives itself away.
func masker(values []string) func(string) string {
	mask := secret.Masker(values, leastMasked)
	return func(text string) string { return secret.Mask(mask(text)) }
}
