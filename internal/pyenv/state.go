package pyenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coppice-run/coppice/internal/file"
)

// EnvState says whether an environment can be used.
type EnvState string

// The states. Setup keeps what an outdated environment holds, refuses to touch a
// foreign directory, and builds all others from scratch.
const (
	EnvReady      EnvState = "ready"
	EnvAbsent     EnvState = "absent"
	EnvIncomplete EnvState = "incomplete" // Setup was interrupted
	EnvOutdated   EnvState = "outdated"   // it runs, with other packages
	EnvBroken     EnvState = "broken"     // its interpreter does not run
	EnvForeign    EnvState = "foreign"    // a directory with something else
)

// stamp is the file that says what was installed.
type stamp struct {
	// Requirements is the SHA-256 of the requirements, in hex.
	Requirements string `json:"requirements"`
	// Base is the interpreter that the environment was built with.
	Base string `json:"base,omitempty"`
	// Python is its version.
	Python   string    `json:"python"`
	Packages []Package `json:"packages"`
	Built    time.Time `json:"built"`
}

// maxStamp bounds a stamp, in bytes.
const maxStamp = 16 << 20

func readStamp(dir string) (stamp, error) {
	var s stamp
	data, err := file.Read(context.Background(), stampFile(dir), maxStamp)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// writeStamp replaces the stamp as a whole.
func writeStamp(dir string, s stamp) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the stamp of %s: %w", dir, err)
	}
	if err := file.Write(stampFile(dir), append(data, '\n'), file.WriteOptions{}); err != nil {
		return fmt.Errorf("finish the environment in %s: %w", dir, err)
	}
	return nil
}

func hashOf(requirements string) string {
	sum := sha256.Sum256([]byte(requirements))
	return hex.EncodeToString(sum[:])
}

// inspect finds out the state of the environment. It runs its interpreter when
// there is one, and changes nothing.
func (b *build) inspect(ctx context.Context) SetupResult {
	r := SetupResult{Dir: b.dir}
	become := func(s EnvState, why string) SetupResult {
		r.State, r.Why = s, why
		return r
	}
	entries, err := os.ReadDir(b.dir)
	switch {
	case exists(incompleteMark(b.dir)):
		return become(EnvIncomplete, "its set-up did not finish")
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return become(EnvAbsent, "it was not set up")
	case err != nil:
		return become(EnvForeign, fmt.Sprintf("it cannot be read: %v", err))
	case !exists(filepath.Join(b.dir, "pyvenv.cfg")):
		return become(EnvForeign, "it is not a Python environment")
	}
	r.Python = venvPython(b.dir)
	p, err := probe(ctx, r.Python, b.pipEnv(), "")
	if err != nil {
		return become(EnvBroken, "its interpreter "+err.Error())
	}
	if !p.recent() {
		return become(EnvBroken, fmt.Sprintf("it holds Python %s, and %s or newer is needed", p.version(), minVersion))
	}
	r.Version = p.version()
	s, err := readStamp(b.dir)
	switch {
	case err != nil:
		return become(EnvOutdated, "it does not say what it holds")
	case s.Requirements != hashOf(b.requirements):
		return become(EnvOutdated, "it holds other versions of its packages")
	}
	r.Packages = s.Packages
	return become(EnvReady, "")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
