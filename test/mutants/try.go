package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// fate is what became of a change.
type fate int

const (
	noticed  fate = iota // a test failed
	hung                 // no test ended any more
	lives                // all tests passed
	unviable             // it does not compile
)

// bench tries changes of one package, one at a time: each worker has its own.
type bench struct {
	// tree is the repository, absolute, pkg the folder of the package in it.
	tree, pkg string
	// tests are those that are run, as for go test: "" for all.
	tests string
	// temp is where files of this bench are.
	temp string
	// patience is for how long no test may end before the tests are taken as hung, quiet the
	// longest time for which none ended in the last run.
	patience, quiet time.Duration
	// slow are tests that come after the others, which notice most of what there is to notice;
	// long are those that took long in the last run.
	slow, long []string
	// switched are the tests of a program that has the changes in it, by their numbers; the others
	// are built one by one.
	switched string
	in       map[place]int
}

// slowly is how long a test takes that others are run before.
const slowly = 300 * time.Millisecond

// prepare builds the tests of a program that has the changes in it, where one can be had.
func (b *bench) prepare(ctx context.Context, todo []change) (said string, err error) {
	overlay, in, err := b.switches(ctx, todo)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(b.temp, "switched")
	if said, err := b.build(ctx, binary, overlay); err != nil {
		return said, err
	}
	b.switched, b.in = binary, in
	return "", nil
}

// build builds the tests of the package.
func (b *bench) build(ctx context.Context, binary, overlay string) (said string, err error) {
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", binary, "./"+b.pkg) //nolint:gosec // whoever runs this named the package
	build.Dir = b.tree
	out, err := build.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("build the tests of %s: %w", b.pkg, err)
	}
	return "", nil
}

// try runs the tests with a change; without one it says whether they pass as they are.
// What the tests said is returned for an error to be read.
func (b *bench) try(ctx context.Context, c *change) (fate, string, error) {
	binary, number := b.switched, 0
	if c != nil {
		number = b.in[c.place()]
	}
	if binary == "" || c != nil && number == 0 {
		overlay := ""
		if c != nil {
			var err error
			if overlay, err = b.overlay(*c); err != nil {
				return 0, "", err
			}
		}
		binary = filepath.Join(b.temp, "tests")
		if said, err := b.build(ctx, binary, overlay); err != nil {
			if ctx.Err() != nil || c == nil {
				return 0, said, err
			}
			return unviable, said, nil
		}
	}
	if c == nil || len(b.slow) == 0 {
		return b.run(ctx, binary, number, "-test.run="+b.tests)
	}
	late := "^(" + strings.Join(b.slow, "|") + ")$"
	if f, said, err := b.run(ctx, binary, number, "-test.run="+b.tests, "-test.skip="+late); err != nil || f != lives {
		return f, said, err
	}
	return b.run(ctx, binary, number, "-test.run="+late)
}

// overlay has the file of a change as it is with it.
func (b *bench) overlay(c change) (string, error) {
	file := filepath.Join(b.tree, filepath.FromSlash(c.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read what is to be changed: %w", err)
	}
	copied, overlay := filepath.Join(b.temp, "changed.go"), filepath.Join(b.temp, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: copied}})
	if err == nil {
		err = os.WriteFile(copied, changed(text, c), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("write the change: %w", err)
	}
	return overlay, nil
}

// verdict is what a test says at its end, if it is not part of another one.
var verdict = regexp.MustCompile(`^--- ([A-Z]+): (\S+) \((\S+)\)`)

// run ends the tests once one has failed, or nothing has ended in them for as long as is waited.
func (b *bench) run(ctx context.Context, binary string, number int, which ...string) (fate, string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stalled, failed := errors.New("no test ends any more"), errors.New("a test has failed")
	watch := time.AfterFunc(b.patience, func() { stop(stalled) })
	defer watch.Stop()
	tests := exec.CommandContext(ctx, binary, append([]string{"-test.v", "-test.failfast", "-test.timeout=0"}, which...)...) //nolint:gosec // it was built here
	tests.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchEnv, number))
	tests.Dir = filepath.Join(b.tree, filepath.FromSlash(b.pkg))
	tests.WaitDelay = time.Second // for what it has started
	var said bytes.Buffer
	read, write := io.Pipe()
	tests.Stdout, tests.Stderr = write, write
	over := make(chan struct{})
	b.quiet, b.long = 0, nil
	last := time.Now()
	go func() { // ends with write
		defer close(over)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadBytes('\n')
			said.Write(line)
			if bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("--- ")) {
				watch.Reset(b.patience)
				b.quiet, last = max(b.quiet, time.Since(last)), time.Now()
			}
			if m := verdict.FindSubmatch(line); m != nil {
				if took, err := time.ParseDuration(string(m[3])); err == nil && took > slowly {
					b.long = append(b.long, string(m[2]))
				}
				if string(m[1]) == "FAIL" {
					// The others would only go on; it has said before why it fails.
					stop(failed)
				}
			}
			if err != nil {
				return
			}
		}
	}()
	err := tests.Run()
	_ = write.Close() // of a pipe in memory
	<-over
	var exit *exec.ExitError
	switch {
	case errors.Is(context.Cause(ctx), stalled):
		return hung, said.String(), nil
	case errors.Is(context.Cause(ctx), failed):
		return noticed, said.String(), nil
	case ctx.Err() != nil:
		return 0, said.String(), fmt.Errorf("run the tests of %s: %w", b.pkg, context.Cause(ctx))
	case err == nil:
		return lives, said.String(), nil
	case errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return noticed, said.String(), nil
	}
	return 0, said.String(), fmt.Errorf("run the tests of %s: %w", b.pkg, err)
}
