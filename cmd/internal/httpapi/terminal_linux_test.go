package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/test/testpython"
)

// editor is a program for machines without vim: it fills the screen, shows what is typed,
// and saves it at Escape.
const editor = `
import os, shutil, signal, sys, termios, tty
tty.setraw(0)
def draw(*_):
    size = shutil.get_terminal_size()
    os.write(1, b"\x1b[2J\x1b[H-- INSERT -- %d %d\r\n" % size)
signal.signal(signal.SIGWINCH, draw)
draw()
text = b""
while (key := os.read(0, 1)) != b"\x1b":
    text += key
    os.write(1, key)
open(sys.argv[1], "wb").write(text + b"\n")
`

// driven is a process with a terminal that a test types into.
type driven struct {
	s    *server
	id   string
	seen []client.ProcessEvent
}

// after is the number of the last event that was seen.
func (d *driven) after() uint64 {
	if len(d.seen) == 0 {
		return 0
	}
	return d.seen[len(d.seen)-1].Seq
}

// until reads on, over a connection of its own, until a text was shown since.
func (d *driven) until(want string) {
	d.s.t.Helper()
	ctx, cancel := context.WithTimeout(d.s.t.Context(), waitTime)
	defer cancel()
	var shown []byte
	for e, err := range d.s.ProcessEvents(ctx, "w", d.id, d.after()) {
		require.NoError(d.s.t, err, "waiting for %q in %q", want, shown)
		d.seen = append(d.seen, e)
		shown = append(shown, e.Data...)
		if want != "" && bytes.Contains(shown, []byte(want)) {
			return
		}
	}
	require.Empty(d.s.t, want, "it ended: %q", shown)
}

// press types.
func (d *driven) press(keys string) {
	d.s.t.Helper()
	n, err := d.s.WriteProcess(d.s.t.Context(), "w", d.id, []byte(keys))
	require.NoError(d.s.t, err)
	require.Len(d.s.t, keys, n)
}

// again types until a text was shown since: a shell that is late with a signal forgets what
// was typed after it.
func (d *driven) again(keys, want string) {
	d.s.t.Helper()
	require.Eventually(d.s.t, func() bool {
		before := len(d.seen)
		d.press(keys)
		ctx, cancel := context.WithTimeout(d.s.t.Context(), time.Second)
		defer cancel()
		for e, err := range d.s.ProcessEvents(ctx, "w", d.id, d.after()) {
			if err != nil {
				break
			}
			d.seen = append(d.seen, e)
			if strings.Contains(d.text(before), want) {
				return true
			}
		}
		return false
	}, waitTime, tick)
}

// terminal starts a process with one.
func (s *server) terminal(args ...string) *driven {
	s.t.Helper()
	p, err := s.StartProcess(s.t.Context(), "w", client.NewProcess{Args: args, Terminal: &client.TerminalSize{Columns: 80, Rows: 24}})
	require.NoError(s.t, err)
	require.True(s.t, p.Terminal)
	return &driven{s: s, id: p.ID}
}

// TestAnEditorOverHTTP: it opens, takes text, is given another size, is read by someone who
// leaves again and again and comes back, and saves. No byte is lost: who reads all of it
// later sees the same.
func TestAnEditorOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	w, err := s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	args, vim := []string{testpython.Path(t), "-c", editor, "text"}, false
	if path, err := exec.LookPath("vim"); err == nil {
		args, vim = []string{path, "-u", "NONE", "-N", "-c", "set showmode", "-i", "NONE", "-n", "text"}, true
	}
	d := s.terminal(args...)
	if vim {
		d.until("text")
		d.press("i")
	}
	d.until("INSERT")
	for i, key := range "hello" {
		d.press(string(key))
		d.until(string(key))
		if i == 2 {
			require.NoError(t, s.ResizeProcess(t.Context(), "w", d.id, client.TerminalSize{Columns: 60, Rows: 15}))
			d.until("INSERT") // it draws all again
		}
	}
	d.press("\x1b")
	if vim {
		d.press(":wq\r")
	}
	d.until("")
	p, err := s.WaitProcess(t.Context(), "w", d.id)
	require.NoError(t, err)
	require.Equal(t, &client.ProcessExit{}, p.Exit)
	data, err := os.ReadFile(filepath.Join(w.Folder, "text"))
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(data))
	again := &driven{s: s, id: d.id}
	again.until("")
	require.Equal(t, d.seen, again.seen)
	for i, e := range again.seen {
		require.Equal(t, uint64(i+1), e.Seq)
	}
}

// TestCtrlCOverHTTP: typed, it is a signal to what runs on the terminal; sent as one it
// is, too.
func TestCtrlCOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	_, err := s.CreateWorkspace(t.Context(), client.NewWorkspace{Name: "w", Env: map[string]string{"PS1": "ready> "}})
	require.NoError(t, err)
	d := s.terminal("sh", "-i")
	d.until("ready> ")
	d.press("sleep 600; echo 'gave '$?\r")
	d.until("sleep 600")
	d.again("\x03", "ready> ") // the shell waits for sleep by then
	d.again("stty size\r", "24 80")
	require.NoError(t, s.ResizeProcess(t.Context(), "w", d.id, client.TerminalSize{Columns: 100, Rows: 50}))
	d.again("stty size\r", "50 100")
	require.NoError(t, s.CloseProcessInput(t.Context(), "w", d.id))
	d.until("")
	last := d.seen[len(d.seen)-1]
	require.Equal(t, client.ProcessEnd, last.Type)

	p, err := s.StartProcess(t.Context(), "w", client.NewProcess{Args: []string{"sleep", "600"}})
	require.NoError(t, err)
	require.NoError(t, s.SignalProcess(t.Context(), "w", p.ID, "INT"))
	p, err = s.WaitProcess(t.Context(), "w", p.ID)
	require.NoError(t, err)
	require.Equal(t, -1, p.Exit.Code)
	require.Equal(t, "interrupt", p.Exit.Signal)
}

// text is what was shown since.
func (d *driven) text(since int) string {
	var b strings.Builder
	for _, e := range d.seen[since:] {
		b.Write(e.Data)
	}
	return b.String()
}

// TestOutputOverHTTP: much output, read in pieces by connections that break, comes whole,
// and input goes the other way.
func TestOutputOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{KeepAlive: 50 * time.Millisecond})
	ctx := t.Context()
	_, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	p, err := s.StartProcess(ctx, "w", client.NewProcess{Args: []string{"cat"}, Input: true, Labels: map[string]string{"for": "test"}})
	require.NoError(t, err)
	require.True(t, p.Input)
	const size = 1 << 20
	sent, written := new(bytes.Buffer), make(chan error, 1)
	go func() { // ends with what it writes
		_, err := io.Copy(s.ProcessInput(ctx, "w", p.ID), io.TeeReader(&pattern{size: size}, sent))
		if err == nil {
			err = s.CloseProcessInput(ctx, "w", p.ID)
		}
		written <- err
	}()
	var got bytes.Buffer
	after, ended := uint64(0), false
	for n := 0; !ended; n++ {
		reads, cancel := context.WithCancel(ctx)
		for e, err := range s.ProcessEvents(reads, "w", p.ID, after) {
			require.NoError(t, err)
			require.Equal(t, after+1, e.Seq)
			after, ended = e.Seq, e.Type == client.ProcessEnd
			got.Write(e.Data)
			if after%7 == 0 {
				break // it leaves in the middle
			}
		}
		cancel()
	}
	require.NoError(t, <-written)
	require.True(t, bytes.Equal(sent.Bytes(), got.Bytes()))
	list, err := s.Processes(ctx, "w")
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "test", list[0].Labels["for"])
	one, err := s.Process(ctx, "w", p.ID)
	require.NoError(t, err)
	require.Equal(t, client.ProcessEnded, one.State)

	p, err = s.StartProcess(ctx, "w", client.NewProcess{Args: []string{"sh", "-c", "trap '' TERM; echo $A; echo up >&2; while :; do sleep 1; done"}, Env: map[string]string{"A": "b c"}})
	require.NoError(t, err)
	var out, errs string
	for e, err := range s.ProcessEvents(ctx, "w", p.ID, 0) {
		require.NoError(t, err)
		if e.Type == client.ProcessStderr {
			errs += string(e.Data)
		} else {
			out += string(e.Data)
		}
		if fmt.Sprint(out, errs) == "b c\nup\n" {
			break
		}
	}
	p, err = s.EndProcess(ctx, "w", p.ID, 10*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, "killed", p.Exit.Signal)
	require.Equal(t, "it was asked to end", p.Exit.Reason)
}
