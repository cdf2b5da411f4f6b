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
)

// Record tells other commands of a server that runs.
type Record = client.Record

// WriteRecord writes the file of a server, for its user alone. The file that an
// earlier server left is replaced.
func WriteRecord(path string, r Record) error {
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
func RemoveRecord(path string, mine Record) error {
	r, ok, err := ReadRecord(path)
	if err != nil || !ok || r != mine {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// ReadRecord reads the file of a server; false: there is none.
func ReadRecord(path string) (Record, bool, error) { return client.ReadRecord(path) }
