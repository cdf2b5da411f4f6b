package terminal

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Device is a terminal in which nothing runs: a test hands Program to the code that
// it tests, and sees all that was ever shown, with its control sequences. Its
// methods may be called from any goroutine. It owns one goroutine, which reads;
// Close joins it.
type Device struct {
	// Program is the end that a program has as its standard input and output.
	Program *os.File

	screen *os.File
	joined chan struct{}

	mu    sync.Mutex
	shown strings.Builder // guarded by mu
	news  chan struct{}   // closed when more is shown; guarded by mu
}

// Open makes a terminal of that size. Close it.
func Open(width, height int) (*Device, error) {
	screen, program, err := open(width, height)
	if err != nil {
		return nil, err
	}
	d := &Device{Program: program, screen: screen, joined: make(chan struct{}), news: make(chan struct{})}
	go d.read()
	return d, nil
}

func (d *Device) read() {
	defer close(d.joined)
	buf := make([]byte, 4096)
	for {
		n, err := d.screen.Read(buf)
		d.mu.Lock()
		d.shown.Write(buf[:n])
		close(d.news)
		d.news = make(chan struct{})
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Shown is everything that was shown so far, with its control sequences.
func (d *Device) Shown() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown.String()
}

// Await waits until what is shown matches a pattern.
func (d *Device) Await(pattern string, patience time.Duration) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	over := time.After(patience)
	for {
		d.mu.Lock()
		shown, news := d.shown.String(), d.news
		d.mu.Unlock()
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
func (d *Device) Type(text string) error {
	_, err := d.screen.WriteString(strings.ReplaceAll(text, "\n", "\r"))
	return err
}

// Echoes says whether what is typed is shown.
func (d *Device) Echoes() (bool, error) {
	state, err := unix.IoctlGetTermios(int(d.Program.Fd()), unix.TCGETS)
	if err != nil {
		return false, err
	}
	return state.Lflag&unix.ECHO != 0, nil
}

// Close ends the terminal.
func (d *Device) Close() {
	_ = d.Program.Close()
	_ = d.screen.Close()
	<-d.joined
}
