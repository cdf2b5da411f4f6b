// Package ipctrace writes which messages pass between a host and its kernels into
// a file: names, ids and sizes, never what they say.
//
// # Guarantees
//
//   - No text of a message, no path of a user's file and no token gets into the
//     file: a [Record] has no room for one.
//   - The file is 0600 in a folder 0700. At most two files of [MaxFile] bytes are
//     kept for a host: when one is full, it takes the place of the older.
//   - A trace never keeps a message from passing: what cannot be written is
//     counted and left out, and the next message is tried again.
//
// Any goroutine may call the methods. They wait for the file system and for
// each other, and for nothing else.
package ipctrace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/file/lines"
)

// MaxFile is how large one file gets, in bytes.
const MaxFile = 32 << 20

// Record is one message or request.
type Record struct {
	At      time.Time `json:"at"`
	Backend string    `json:"backend"`
	// Kernel is the kernel's id, or the session's process id.
	Kernel string `json:"kernel,omitempty"`
	// Direction is sent, received or requested.
	Direction string `json:"direction"`
	Channel   string `json:"channel,omitempty"`
	Type      string `json:"type,omitempty"`
	ID        string `json:"id,omitempty"`
	// Parent is the message that it answers.
	Parent string `json:"parent,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	// Method, Path, Code and Millis describe a request over HTTP.
	Method string  `json:"method,omitempty"`
	Path   string  `json:"path,omitempty"`
	Code   int     `json:"code,omitempty"`
	Millis float64 `json:"ms,omitempty"`
}

// File is the trace of one host. A nil File traces nothing.
type File struct {
	path string
	file *lines.File

	mu      sync.Mutex
	dropped int64 // guarded by mu
	closed  bool  // guarded by mu
}

// Open makes the file of a host in a folder, which it makes too.
func Open(dir string) (*File, error) { return open(dir, MaxFile) }

func open(dir string, most int64) (*File, error) {
	path := filepath.Join(dir, fmt.Sprintf("ipc-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405.000000"), os.Getpid()))
	file, err := lines.Open(lines.Options{Path: path, MaxBytes: most, Keep: 1})
	if err != nil {
		return nil, fmt.Errorf("open the trace: %w", err)
	}
	return &File{path: path, file: file}, nil
}

// Path returns where it is; "" for a nil File. The file that was full before is
// beside it, with .1 at the end.
func (f *File) Path() string {
	if f == nil {
		return ""
	}
	return f.path
}

// Write adds a record.
func (f *File) Write(r Record) {
	if f == nil {
		return
	}
	if r.At.IsZero() {
		r.At = time.Now()
	}
	line, err := json.Marshal(r)
	if err == nil {
		// At once: whoever looks at it while something hangs sees the last message.
		err = f.file.Append(append(line, '\n'))
	}
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.dropped++
	}
}

// Close ends the trace. It may be called more than once.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	err := f.file.Close()
	if err == nil && f.dropped > 0 {
		err = fmt.Errorf("%d messages could not be written to the trace %s", f.dropped, f.path)
	}
	return err
}
