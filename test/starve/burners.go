package starve

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// burnerVariable makes a program that imports this package a burner.
const burnerVariable = "COPPICE_TEST_BURNER"

// A burner wants a processor all the time, until its standard input ends: that is so
// when the program that started it ends, however that happens.
func init() { //nolint:gochecknoinits // before a TestMain, whatever that does
	if os.Getenv(burnerVariable) == "" {
		return
	}
	runtime.GOMAXPROCS(1)
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for { //nolint:staticcheck // that is what it is for
	}
}

// Burners are processes that want a processor all the time.
type Burners struct {
	ends []io.Closer // of their standard inputs
	cmds []*exec.Cmd
}

// Burn starts n burners; Stop must be called. Each is a session of its own, so that a
// system which shares processors between sessions counts each of them.
func Burn(n int) (*Burners, error) { return burn(n, true) }

// burn starts burners, each as a session of its own or all in that of this process.
func burn(n int, sessions bool) (*Burners, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	b := &Burners{}
	for range n {
		cmd := exec.Command(self) //nolint:noctx // it ends with its input, which Stop and the end of this process close
		cmd.Env = []string{burnerVariable + "=1"}
		if sessions {
			alone(cmd)
		}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start a burner: %w", err), b.Stop())
		}
		b.ends, b.cmds = append(b.ends, in), append(b.cmds, cmd)
	}
	return b, nil
}

// Stop ends them and waits for that. The error says which did not end well.
func (b *Burners) Stop() error {
	var errs []error
	for _, in := range b.ends {
		errs = append(errs, in.Close())
	}
	for _, cmd := range b.cmds {
		errs = append(errs, cmd.Wait())
	}
	b.ends, b.cmds = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end burners: %w", err)
	}
	return nil
}

// With keeps n processors busy until the test ends.
func With(tb testing.TB, n int) {
	tb.Helper()
	b, err := Burn(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Stop(); err != nil {
			tb.Error(err)
		}
	})
}
