package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long a program gets to end after its terminal has gone.
const grace = 10 * time.Second

// Terminal is a program in a terminal.
type Terminal struct {
	pty    *os.File
	cmd    *exec.Cmd
	ended  chan struct{} // the program has
	joined sync.WaitGroup
	once   sync.Once

	mu     sync.Mutex
	screen *Screen // guarded by mu
	waited error   // guarded by mu; set before ended is closed
}

// Start runs cmd in a terminal of that size, in a session of its own. Its
// standard streams are the terminal's. The caller closes the terminal.
func Start(cmd *exec.Cmd, width, height int) (*Terminal, error) {
	pty, tty, err := open(width, height)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tty.Close() }()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s in a terminal: %w", cmd.Path, err), pty.Close())
	}
	t := &Terminal{pty: pty, cmd: cmd, ended: make(chan struct{}), screen: NewScreen(width, height)}
	t.joined.Go(func() { _, _ = io.Copy(writer{t}, pty) }) // it ends when nobody has the terminal open any more
	t.joined.Go(func() {
		err := cmd.Wait()
		t.mu.Lock()
		t.waited = err
		t.mu.Unlock()
		close(t.ended)
	})
	return t, nil
}

// open makes a pseudo-terminal: the end of whoever looks at it and types, whose
// reads end when it is closed, and the end of a program.
func open(width, height int) (screen, program *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pseudo-terminal: %w", err)
	}
	raw, err := screen.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a pseudo-terminal: %w", err), screen.Close())
	}
	var number int
	var refused error
	err = raw.Control(func(fd uintptr) {
		if number, refused = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); refused != nil {
			return
		}
		if refused = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); refused != nil {
			return
		}
		refused = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)})
	})
	if err = errors.Join(err, refused); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a pseudo-terminal: %w", err), screen.Close())
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the terminal: %w", err), screen.Close())
	}
	return screen, program, nil
}

// writer writes to the screen under the lock.
type writer struct{ t *Terminal }

func (w writer) Write(p []byte) (int, error) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	return w.t.screen.Write(p)
}

// keys are what a terminal sends for the keys that have names.
var keys = map[string]string{
	"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "F1": "\x1bOP", "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D",
	"PageUp": "\x1b[5~", "PageDown": "\x1b[6~", "BSpace": "\x7f",
}

// Press presses keys by their names: those of tmux, such as Enter, F1 and C-c.
func (t *Terminal) Press(names ...string) error {
	for _, name := range names {
		sent, ok := keys[name]
		if letter, control := strings.CutPrefix(name, "C-"); control && len(letter) == 1 {
			sent, ok = string(letter[0]&0x1f), true
		}
		if !ok {
			return fmt.Errorf("press %s: there is no such key", name)
		}
		if err := t.Type(sent); err != nil {
			return err
		}
	}
	return nil
}

// Type types text.
func (t *Terminal) Type(text string) error {
	if _, err := t.pty.WriteString(text); err != nil {
		return fmt.Errorf("type into the terminal: %w", err)
	}
	return nil
}

// Text returns what the screen shows.
func (t *Terminal) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.Text()
}

// Cells returns what the screen shows, with its colours.
func (t *Terminal) Cells() [][]Cell {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.Cells()
}

// Unknown returns the sequences that the screen did not know.
func (t *Terminal) Unknown() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.Unknown
}

// Ended is closed when the program has ended; Err then says how.
func (t *Terminal) Ended() <-chan struct{} { return t.ended }

// Err is what waiting for the program returned.
func (t *Terminal) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waited
}

// Close takes the terminal away, as closing its window does, and ends a program
// that stays all the same. It returns when nothing of it runs any more.
func (t *Terminal) Close() {
	t.once.Do(func() {
		_ = t.pty.Close() // the program gets SIGHUP
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-t.ended:
		case <-timer.C:
			_ = t.cmd.Process.Kill()
		}
		t.joined.Wait()
	})
}
