//go:build !windows

package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// pipeCode makes an interpreter a session of the runner, with the sources of this
// module and the descriptors of its protocol from 3 on.
const pipeCode = `import sys, socket
sys.path.insert(0, sys.argv[1])
from coppice_runner import main
main.run("session", socket.socket(fileno=3), [4, 5, 6, 7, 8, 9], {})`

// barePipe talks to a session of the runner by itself.
func barePipe(ctx context.Context, o Options) (times, error) {
	t := newTimes()
	for n := range o.Creates {
		begin := time.Now()
		p, err := newPipe(ctx, o)
		if err != nil {
			return t, err
		}
		err = p.call(1)
		t.create.Record(time.Since(begin))
		for i := 0; n == 0 && err == nil && i < o.Calls; i++ {
			begin := time.Now()
			err = p.call(2 + i)
			t.execute.Record(time.Since(begin))
		}
		if err = errors.Join(err, p.end()); err != nil {
			return t, err
		}
	}
	return t, nil
}

// barePipeOpener opens such sessions one by one.
func barePipeOpener(o Options) Opener {
	return func(ctx context.Context) (Opened, error) {
		p, err := newPipe(ctx, o)
		if err != nil {
			return Opened{}, err
		}
		id := 0
		return Opened{Call: func() error { id++; return p.call(id) }, Close: p.end}, nil
	}
}

// pipe is one session.
type pipe struct {
	cmd   *exec.Cmd
	main  net.Conn
	lines *bufio.Reader
	ours  []*os.File
}

func newPipe(ctx context.Context, o Options) (_ *pipe, err error) {
	p := &pipe{}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			for _, f := range p.ours {
				err = errors.Join(err, f.Close())
			}
		}
	}()
	for range 2 { // main, control
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return nil, fmt.Errorf("make a socket: %w", err)
		}
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
		p.ours = append(p.ours, os.NewFile(uintptr(pair[0]), "ours"))
		theirs = append(theirs, os.NewFile(uintptr(pair[1]), "theirs"))
	}
	for range 2 { // stdout, stderr: both ends are the session's
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		theirs = append(theirs, r, w)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	theirs, p.ours = append(theirs, r), append(p.ours, w) // the lifeline
	if p.main, err = net.FileConn(p.ours[0]); err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	p.lines = bufio.NewReader(p.main)
	p.cmd = exec.CommandContext(ctx, o.Python, "-I", "-c", pipeCode, filepath.Join(o.Root, "internal", "pysrc"))
	p.cmd.ExtraFiles = theirs
	p.cmd.Stderr = os.Stderr
	// When the lifeline ends, a session ends its whole process group.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start Python: %w", err), p.main.Close())
	}
	// While they are open here, the end of a Python that fails is not seen.
	for _, f := range theirs {
		err = errors.Join(err, f.Close())
	}
	if theirs = nil; err != nil {
		return nil, errors.Join(err, p.end())
	}
	if err := p.send(map[string]any{"type": "init", "version": 1}); err != nil {
		return nil, errors.Join(err, p.end())
	}
	for {
		f, err := p.frame()
		if err != nil || f.Type == "failed" {
			return nil, errors.Join(fmt.Errorf("it did not get ready: %w %s", err, f.Message), p.end())
		}
		if f.Type == "ready" {
			return p, nil
		}
	}
}

// frame is what is needed of one.
type frame struct {
	Type    string                     `json:"type"`
	Message string                     `json:"message"`
	OK      bool                       `json:"ok"`
	Data    map[string]json.RawMessage `json:"data"`
}

func (p *pipe) send(request map[string]any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := p.main.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send to the session: %w", err)
	}
	return nil
}

func (p *pipe) frame() (frame, error) {
	var f frame
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return f, fmt.Errorf("read from the session: %w", err)
	}
	return f, json.Unmarshal(line, &f)
}

// call runs 1+1.
func (p *pipe) call(id int) error {
	if err := p.send(map[string]any{"type": "execute", "id": id, "code": "1+1"}); err != nil {
		return err
	}
	value := ""
	for {
		f, err := p.frame()
		switch {
		case err != nil:
			return err
		case f.Type == "result":
			value = string(f.Data["text/plain"])
		case f.Type == "done" && (!f.OK || value != `"2"`):
			return fmt.Errorf("the call ended with ok=%t and %s", f.OK, value)
		case f.Type == "done":
			return nil
		}
	}
}

// end asks the session to end, and waits for it.
func (p *pipe) end() error {
	err := p.send(map[string]any{"type": "exit"})
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() }) // Wait tells of it
	defer late.Stop()
	err = errors.Join(err, p.cmd.Wait(), p.main.Close())
	for _, f := range p.ours { // the lifeline among them
		err = errors.Join(err, f.Close())
	}
	return err
}
