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
//     counted and left out.
//
// Any goroutine may call the methods. They wait for the file system, for each
// other, and for nobody else.
package ipctrace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
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
	max  int64

	mu      sync.Mutex
	f       *os.File      // guarded by mu; nil after Close
	w       *bufio.Writer // guarded by mu
	size    int64         // guarded by mu
	dropped int64         // guarded by mu
}

// Open makes the file of a host in a folder, which it makes too.
func Open(dir string) (*File, error) { return open(dir, MaxFile) }

func open(dir string, most int64) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of traces: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("ipc-%s-%d.jsonl", time.Now().UTC().Format("20060102T150405.000000"), os.Getpid()))
	f := &File{path: path, max: most}
	return f, f.create()
}

// create begins an empty file. It is called before f is shared, or under mu.
func (f *File) create() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the trace: %w", err)
	}
	f.f, f.w, f.size = file, bufio.NewWriter(file), 0
	return nil
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.f == nil {
		f.dropped++
		return
	}
	if f.size+int64(len(line))+1 > f.max {
		f.turn()
	}
	if f.f == nil {
		f.dropped++
		return
	}
	n, err := f.w.Write(append(line, '\n'))
	f.size += int64(n)
	if err == nil {
		err = f.w.Flush() // who looks at it while something hangs sees the last message
	}
	if err != nil {
		f.dropped++
	}
}

// turn puts the full file aside. Under mu.
func (f *File) turn() {
	_ = f.w.Flush()
	_ = f.f.Close()
	f.f = nil
	if os.Rename(f.path, f.path+".1") == nil {
		_ = f.create() // else the rest is dropped and counted
	}
}

// Close ends the trace. It may be called more than once.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil {
		return nil
	}
	err := errors.Join(f.w.Flush(), f.f.Close())
	f.f = nil
	if err == nil && f.dropped > 0 {
		err = fmt.Errorf("%d messages could not be written to the trace %s", f.dropped, f.path)
	}
	return err
}
