package pty

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal is a terminal of 100 columns. Its methods may be called from any
// goroutine.
type Terminal struct {
	// Program is the end that a program has as its standard input and output.
	Program *os.File

	screen *os.File
	joined chan struct{}

	mu    sync.Mutex
	shown strings.Builder // guarded by mu
	news  chan struct{}   // closed when more is shown; guarded by mu
}

// Open makes a terminal. Close it.
func Open() (*Terminal, error) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	program, err := other(screen)
	if err != nil {
		_ = screen.Close()
		return nil, fmt.Errorf("make a terminal: %w", err)
	}
	t := &Terminal{Program: program, screen: screen, joined: make(chan struct{}), news: make(chan struct{})}
	go t.read()
	return t, nil
}

// other opens the other end.
func other(screen *os.File) (*os.File, error) {
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		return nil, err
	}
	// Reads of the screen end with its Close only when it does not block.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}

func (t *Terminal) read() {
	defer close(t.joined)
	buf := make([]byte, 4096)
	for {
		n, err := t.screen.Read(buf)
		t.mu.Lock()
		t.shown.Write(buf[:n])
		close(t.news)
		t.news = make(chan struct{})
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Shown is everything that was shown so far, with its control sequences.
func (t *Terminal) Shown() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shown.String()
}

// Await waits until what is shown matches a pattern.
func (t *Terminal) Await(pattern string, patience time.Duration) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	over := time.After(patience)
	for {
		t.mu.Lock()
		shown, news := t.shown.String(), t.news
		t.mu.Unlock()
		if re.MatchString(shown) {
			return nil
		}
		select {
		case <-news:
		case <-over:
			return fmt.Errorf("the terminal does not show %q, but %q", pattern, shown)
		}
	}
}

// Type types text. A newline is the return key, \x03 Ctrl-C.
func (t *Terminal) Type(text string) error {
	_, err := t.screen.WriteString(strings.ReplaceAll(text, "\n", "\r"))
	return err
}

// Echoes says whether what is typed is shown.
func (t *Terminal) Echoes() (bool, error) {
	state, err := unix.IoctlGetTermios(int(t.Program.Fd()), unix.TCGETS)
	if err != nil {
		return false, err
	}
	return state.Lflag&unix.ECHO != 0, nil
}

// Close ends the terminal.
func (t *Terminal) Close() {
	_ = t.Program.Close()
	_ = t.screen.Close()
	<-t.joined
}
