package client_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestRecordIsNoFile: what is no file is no record of a server, and nobody waits for it.
func TestRecordIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "serve.json")
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, path)
		notfile.AtOnce(t, func() {
			_, there, err := client.ReadRecord(path)
			if there || err == nil || !strings.Contains(err.Error(), path+": is "+string(kind)+", not a regular file; ") {
				t.Errorf("%s: %v %v", kind, there, err)
			}
		})
	}
}
