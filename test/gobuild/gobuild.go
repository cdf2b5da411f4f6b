// Package gobuild runs go for tests as the test itself was built. A test with the race
// detector that builds without it compiles everything a second time, since the compiled
// packages of the one are of no use to the other.
//
// It has no state; any goroutine may call it.
package gobuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
)

// Flags are those of go build and go vet with which the packages of this program can be
// used again: "-race", if it has the race detector.
func Flags() []string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return []string{"-race"}
			}
		}
	}
	return nil
}

// Coppice builds the command in a folder and returns its path. The working directory is
// one of the repository, as it is in tests.
func Coppice(ctx context.Context, dir string) (path string, err error) {
	path = filepath.Join(dir, "coppice")
	args := append([]string{"build", "-ldflags=-s -w", "-o", path}, Flags()...)
	if counts := os.Getenv("COPPICE_TEST_COVERAGE"); counts != "" { // make coverage counts what programs run, too
		args = append(args, "-cover", "-coverpkg=github.com/coppice-run/coppice/...")
		// go test has said where its own counts go, and leaves out those of other programs.
		if err := os.Setenv("GOCOVERDIR", counts); err != nil {
			return "", fmt.Errorf("say where the counts of the command go: %w", err)
		}
	}
	said, err := exec.CommandContext(ctx, "go", append(args, "github.com/coppice-run/coppice/cmd/coppice")...).CombinedOutput() //nolint:gosec // our own flags
	if err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, said)
	}
	return path, nil
}
