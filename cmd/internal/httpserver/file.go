package httpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
)

// Record tells of this server and of the folder of tools that it serves, with the
// identity of this process where the system tells it.
func (s *Server) Record(tools string) client.Record {
	me, _ := process.Identify(os.Getpid()) // without a start the record says less, which Runs knows
	return client.Record{URL: s.URL(), Token: s.Token(), Socket: s.Socket(), PID: os.Getpid(), Start: me.Start, Tools: tools}
}

// WriteRecord writes the file of a server, for its user alone. The file that an
// earlier server left is replaced.
func WriteRecord(path string, r client.Record) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Write(path, data, file.WriteOptions{})
}

// RemoveRecord removes the file of a server, unless it is another one's by now.
func RemoveRecord(path string, mine client.Record) error {
	r, ok, err := client.ReadRecord(path)
	if err != nil || !ok || r != mine {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
