package repl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/file"
)

const (
	maxHistory   = 1000
	maxEntryText = 64 << 10
)

// history is what was run, the oldest first. On disk each entry is one line of
// JSON, so that an entry may have lines of its own.
type history struct {
	path    string
	entries []string
	at      int // the entry that is shown; len(entries) is the text being typed
	typed   string
}

// loadHistory reads the file at path; one that is not there is an empty history.
// Lines that cannot be read are left out.
func loadHistory(path string) *history {
	h := &history{path: path}
	if f, err := file.Open(path); err == nil {
		defer f.Close()
		in := bufio.NewScanner(f)
		in.Buffer(nil, 2*maxEntryText)
		for in.Scan() {
			var text string
			if json.Unmarshal(in.Bytes(), &text) == nil && text != "" {
				h.entries = append(h.entries, text)
			}
		}
	}
	h.entries = h.entries[max(0, len(h.entries)-maxHistory):]
	h.at = len(h.entries)
	return h
}

// add remembers text and writes it to the file.
func (h *history) add(text string) error {
	defer func() { h.at, h.typed = len(h.entries), "" }()
	if n := len(h.entries); text == "" || len(text) > maxEntryText || n > 0 && h.entries[n-1] == text {
		return nil
	}
	h.entries = append(h.entries, text)
	if h.path == "" { // for this screen alone
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	f, err := file.OpenFile(h.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if end := f.Close(); err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

// back returns the entry before the one that is shown, and false at the oldest.
func (h *history) back(typed string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.entries) {
		h.typed = typed
	}
	h.at--
	return h.entries[h.at], true
}

// forward returns the entry after the one that is shown.
func (h *history) forward() (string, bool) {
	if h.at >= len(h.entries) {
		return "", false
	}
	h.at++
	if h.at == len(h.entries) {
		return h.typed, true
	}
	return h.entries[h.at], true
}
