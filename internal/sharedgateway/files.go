package sharedgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/process"
)

// DirIn returns the folder of the shared gateways and of the journal in a home
// folder (~/.<brand>).
func DirIn(home string) string { return filepath.Join(home, "agent", "python-gateway") }

// Gateway is one entry of gateway.json.
type Gateway struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	// Process is zero until the gateway has answered for the first time.
	Process     process.Identity `json:"process"`
	Fingerprint string           `json:"fingerprint"`
	// Shard is its number among the gateways of the fingerprint, from 0.
	Shard int `json:"shard"`
	// MaxKernels is how many kernels it takes, from all its hosts together.
	MaxKernels int `json:"max_kernels"`
	// Python is the interpreter, for people.
	Python string `json:"python"`
	// Dir is the private directory of the gateway, removed with it.
	Dir     string    `json:"dir"`
	Started time.Time `json:"started"`
}

// String names the gateway without its token.
func (g Gateway) String() string {
	if !g.settled() {
		return "the kernel gateway that starts at " + g.URL
	}
	return fmt.Sprintf("kernel gateway %d at %s", g.Process.PID, g.URL)
}

// GoString is String, so that no format shows the token.
func (g Gateway) GoString() string { return g.String() }

type record struct {
	Gateways []Gateway `json:"gateways"`
}

const (
	maxRecord   = 16 << 20 // bytes of a file
	recordFile  = "gateway.json"
	lockFile    = "gateway.lock"
	hostsDir    = "hosts"
	sessionsDir = "sessions"
)

// read returns what is recorded. A file that cannot be understood counts as
// empty: gateways that are not recorded end by themselves, or record themselves again
// while they are used.
func read(dir string) (record, error) {
	var r record
	data, err := file.Read(context.Background(), filepath.Join(dir, recordFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read which gateways run: %w", err)
	}
	if json.Unmarshal(data, &r) != nil {
		return record{}, nil
	}
	return r, nil
}

func write(dir string, r record) error { return writeJSON(filepath.Join(dir, recordFile), r) }

// writeJSON replaces a file as a whole.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return file.Write(path, append(data, '\n'), file.WriteOptions{})
}

// without returns the gateways that are not g.
func (r record) without(g Gateway) record {
	var kept []Gateway
	for _, other := range r.Gateways {
		if other.Dir != g.Dir || other.Process != g.Process {
			kept = append(kept, other)
		}
	}
	return record{Gateways: kept}
}

// prepare makes the folders.
func prepare(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, hostsDir), filepath.Join(dir, sessionsDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("make the folder of shared gateways: %w", err)
		}
		if err := os.Chmod(d, 0o700); err != nil { //nolint:gosec // a folder needs its x
			return fmt.Errorf("keep others out of the folder of shared gateways: %w", err)
		}
	}
	return nil
}
