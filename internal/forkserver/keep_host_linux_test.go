package forkserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
)

// roleEnv makes the test binary play a host instead of running tests: the folder of
// custodies, how many sessions, how long they are kept, the interpreter, and the custody
// that it takes over in place of beginning one.
const roleEnv = "COPPICE_TEST_ROLE"

// patience bounds every wait.
const patience = 2 * time.Minute

// long is how long sessions are kept that a test goes on with: when it fails, they end then.
const long = 5 * time.Minute

const (
	printed = 4000 // lines that a cell prints: more than its socket holds
	before  = 5    // frames of it that the first host reads
)

// told is what a host says when all its sessions are kept.
type told struct {
	Custody   string
	Custodian process.Identity
	Server    process.Identity
	Sessions  []begun
}

// begun is a session, with what has left its process group, and how much of what it prints
// was read.
type begun struct {
	Process, Stray process.Identity
	Read           int
	Printing       bool
}

// note is what the next host learns of a session.
type note struct {
	Process process.Identity
	Mark    string
}

// printing is the cell in whose middle a host is killed, and all that it prints.
var printing = fmt.Sprintf("for n in range(%d): print('line', n, '.' * 90)", printed)

func all() string {
	var b strings.Builder
	for n := range printed {
		fmt.Fprintf(&b, "line %d %s\n", n, strings.Repeat(".", 90))
	}
	return b.String()
}

// play is a host. It returns only when it fails.
func play(role []string) error {
	ctx := context.Background()
	n, err := strconv.Atoi(role[1])
	if err != nil {
		return err
	}
	keepFor, err := time.ParseDuration(role[2])
	if err != nil {
		return err
	}
	o := custody.Options{Dir: role[0], Python: role[3], KeepFor: keepFor}
	if len(role) > 4 {
		return succeed(ctx, o, role[4])
	}
	c, err := custody.Begin(ctx, o)
	if err != nil {
		return err
	}
	life, err := forkserver.NewLifeline()
	if err == nil {
		err = c.Put(ctx, custody.Item{Name: "lifeline", Files: []*os.File{life.File()}, Common: true})
	}
	if err != nil {
		return err
	}
	var owner process.Owner
	owner.Use(role[3])
	owner.Outlive(func(files []*os.File) error {
		return c.Put(ctx, custody.Item{Name: "owner", Files: files, Common: true})
	})
	s, err := forkserver.Launch(ctx, forkserver.Options{Python: role[3], Env: os.Environ(), Owner: &owner, Lifeline: life})
	if err != nil {
		return err
	}
	t := told{Custody: c.ID(), Custodian: c.Custodian(), Server: s.Identity()}
	for i := range n {
		one, err := begin(ctx, s, c, i)
		if err != nil {
			return err
		}
		t.Sessions = append(t.Sessions, one)
		_, _ = fmt.Fprintln(os.Stdout, "kept", i)
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		return err
	}
	select {}
}

// succeed is a host that takes over what another has left, and has each session remember
// one more thing.
func succeed(ctx context.Context, o custody.Options, id string) error {
	c, err := custody.Take(ctx, o, id)
	if err != nil {
		return err
	}
	for _, name := range c.Names() {
		item, err := c.Hand(ctx, name)
		if err != nil {
			return err
		}
		var n note
		if err := json.Unmarshal(item.Note, &n); err != nil {
			return err
		}
		child, err := forkserver.Adopt(n.Process, item.Files)
		if err != nil {
			return err
		}
		if _, err := (wire{child: child, mark: n.Mark, lines: oneByOne{child.Main}}).run(3, "y = x + 1"); err != nil {
			return err
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(told{}); err != nil {
		return err
	}
	select {}
}

// begin starts a session that remembers its number and may be in the middle of a cell.
func begin(ctx context.Context, s *forkserver.Server, c *custody.Custody, i int) (b begun, err error) {
	child, err := s.Fork(nil, nil)
	if err != nil {
		return b, err
	}
	w := wire{child: child, mark: fmt.Sprintf("mark%d", i), lines: oneByOne{child.Main}}
	if err := w.ask(ndjson.Request{Type: ndjson.TypeInit, Version: ndjson.Version, Mark: w.mark}); err != nil {
		return b, err
	}
	ready, err := w.next()
	if err != nil || ready.Type != ndjson.TypeReady {
		return b, fmt.Errorf("%+v: %w", ready, err)
	}
	child.Known(ready.PID)
	text, err := w.run(1, fmt.Sprintf("import subprocess\nx = %d\nprint(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)", i))
	if err != nil {
		return b, err
	}
	stray, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return b, err
	}
	if b.Stray, err = process.Identify(stray); err != nil {
		return b, err
	}
	if b.Process, err = process.Identify(ready.PID); err != nil {
		return b, err
	}
	known, err := json.Marshal(note{b.Process, w.mark})
	if err != nil {
		return b, err
	}
	err = child.Keep(func(files []*os.File) error {
		return c.Put(ctx, custody.Item{Name: strconv.Itoa(i), Note: known, Files: files})
	})
	if b.Printing = i%2 == 0; err != nil || !b.Printing {
		return b, err
	}
	if err := w.ask(ndjson.Request{Type: ndjson.TypeExecute, ID: 2, Code: &printing}); err != nil {
		return b, err
	}
	for range before {
		f, err := w.next()
		if err != nil {
			return b, err
		}
		b.Read += len(f.Text)
	}
	return b, nil
}

// wire is what a host says to a session.
type wire struct {
	child *forkserver.Child
	mark  string
	lines interface{ Next() ([]byte, error) }
}

// oneByOne reads lines and nothing beyond them: what a host that is killed had read is
// gone with it.
type oneByOne struct{ f *os.File }

func (r oneByOne) Next() ([]byte, error) {
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if _, err := r.f.Read(one); err != nil {
			return nil, err
		}
		if one[0] == '\n' {
			return line, nil
		}
	}
}

func (w wire) ask(r ndjson.Request) error {
	line, err := ndjson.AppendRequest(nil, r)
	if err == nil {
		_, err = w.child.Main.Write(line)
	}
	return err
}

func (w wire) next() (ndjson.Frame, error) {
	line, err := w.lines.Next()
	if err != nil {
		return ndjson.Frame{}, err
	}
	return ndjson.ParseFrame(bytes.TrimPrefix(line, []byte(w.mark)))
}

// run runs a cell and returns what it prints.
func (w wire) run(id uint64, code string) (string, error) {
	if err := w.ask(ndjson.Request{Type: ndjson.TypeExecute, ID: id, Code: &code}); err != nil {
		return "", err
	}
	return w.rest(id)
}

// rest returns what a cell prints from now on. Its frames have to be without a gap.
func (w wire) rest(id uint64) (string, error) {
	var text strings.Builder
	for last := uint64(0); ; {
		f, err := w.next()
		switch {
		case err != nil:
			return "", err
		case f.ID != id:
			return "", fmt.Errorf("a frame of cell %d among those of %d", f.ID, id)
		case last != 0 && f.Seq != last+1:
			return "", fmt.Errorf("frame %d after frame %d", f.Seq, last)
		case f.Type == ndjson.TypeDone && !f.OK:
			return "", fmt.Errorf("cell %d has failed: %q", id, text.String())
		case f.Type == ndjson.TypeDone:
			return text.String(), nil
		}
		last = f.Seq
		text.WriteString(f.Text)
	}
}
