package scenario

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// chattyCode prints the time, at fixed instants: a line that is late by its own
// fault does not move the next one.
const chattyCode = `import time
begin = time.monotonic()
for i in range(%d):
    time.sleep(max(0, begin + i * %g - time.monotonic()))
    print(time.time_ns(), flush=True)`

var chatty = Scenario{
	Name: "chatty", About: "sessions that print a line ten times a second: from print to the consumer of the stream",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 50, Rate: 10, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 5, Rate: 10, Duration: 5 * time.Second},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions})
		if err != nil {
			return err
		}
		sessions, err := r.live(ctx, h, r.Sessions)
		if err != nil {
			return err
		}
		lines := max(1, int(r.Rate*r.Duration.Seconds()))
		code := fmt.Sprintf(chattyCode, lines, 1/r.Rate)
		rec := load.NewRecorder()
		done := r.counter("lines", lines*r.Sessions)
		var streams sync.WaitGroup
		for _, s := range sessions {
			c := coppiceSession(s)
			streams.Go(func() {
				if n, err := listen(ctx, c, code, r.Plant, rec, done); err != nil || n != lines {
					r.wrongs.add(fmt.Sprintf("%d of %d lines came: %v", n, lines, err))
				}
			})
		}
		streams.Wait()
		s := rec.Summary()
		r.quantiles("", s)
		r.metric("lines", "", float64(s.Count), record.None)
		return nil
	},
}

// listen runs code and records how old each printed time is.
func listen(ctx context.Context, s *coppice.Session, code string, plant float64, rec *load.Recorder, done func()) (lines int, err error) {
	rest := ""
	for e, err := range s.Stream(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}}) {
		if err != nil {
			return lines, err
		}
		text, ok := e.(messages.Stream)
		if !ok {
			continue
		}
		now := time.Now()
		rest += text.Text
		for {
			line, after, ok := strings.Cut(rest, "\n")
			if !ok {
				break
			}
			rest = after
			ns, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				return lines, fmt.Errorf("a line that was not printed: %w", err)
			}
			age := now.Sub(time.Unix(0, ns))
			rec.Record(age + time.Duration(float64(age)*plant))
			lines++
			done()
		}
	}
	return lines, nil
}

// coppiceSession is the session of package coppice under s, nil when there is none.
func coppiceSession(s session) *coppice.Session {
	switch s := s.(type) {
	case realSession:
		return s.Session
	case plantedSession:
		return coppiceSession(s.session)
	default:
		return nil
	}
}

const (
	floodLine = "0123456789 abcdefghijklmnopqrstuvwxyz é 木 0123456789\n"
	floodCode = `import sys
block = %q * 1100
for _ in range(%d):
    n = sys.stdout.write(block)`
)

var flood = Scenario{
	Name: "flood", About: "64 MiB for each second of the duration, printed as fast as Python can: the host's memory, and the artifact is what was printed",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 1, Duration: time.Second},
		backends.Gateway: {Sessions: 1, Duration: time.Second},
	},
	run: func(ctx context.Context, r *round) error { return r.withArtifacts(ctx, r.flood) },
}

// withArtifacts calls f with a host that keeps what is printed in a folder, and with its
// sessions.
func (r *round) withArtifacts(ctx context.Context, f func(ctx context.Context, h host, sessions []session, dir string) error) (err error) {
	dir, remove, err := temp()
	if err != nil {
		return err
	}
	defer func() {
		if e := remove(); err == nil {
			err = e
		}
	}()
	h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions, Output: coppice.OutputOptions{Artifacts: dir}})
	if err != nil {
		return err
	}
	sessions, err := r.live(ctx, h, r.Sessions)
	if err != nil {
		return err
	}
	return f(ctx, h, sessions, dir)
}

func (r *round) flood(ctx context.Context, h host, sessions []session, _ string) error {
	blocks := int(64 << 20 * r.Duration.Seconds() / float64(1100*len(floodLine)))
	hash := sha256.New()
	for range blocks {
		_, _ = io.WriteString(hash, strings.Repeat(floodLine, 1100)) // a hash does not fail
	}
	want := hash.Sum(nil)
	code := fmt.Sprintf(floodCode, floodLine, blocks)
	r.tell("flooding")
	stop := watchMemory()
	begin := time.Now()
	var printed atomic.Int64 // the last of them; what it has kept is looked at later
	err := each(ctx, sessions, func(s session) error {
		return drown(ctx, h, s, code, want, func() { printed.Store(int64(time.Since(begin))) })
	})
	took, grown := time.Duration(printed.Load()), stop()
	if err != nil {
		return err
	}
	mib := float64(blocks*1100*len(floodLine)*r.Sessions) / (1 << 20)
	r.metric("throughput", "MiB/s", mib/(took.Seconds()*(1+r.Plant)), record.More)
	r.metric("size", "MiB", mib, record.None)
	if grown >= 0 {
		r.metric("host-growth", "MiB", grown, record.Less)
	}
	return nil
}

// drown runs a flood, tells that its result is there, and compares its artifact with what
// was printed.
func drown(ctx context.Context, h host, s session, code string, want []byte, over func()) error {
	res, err := coppiceSession(s).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: coppice.NoTimeout})
	over()
	switch {
	case err != nil:
		return err
	case res.Outcome != messages.OutcomeOK:
		return fmt.Errorf("the flood ended %s: %s", res.Outcome, res.Reason)
	case res.Artifact == nil:
		return fmt.Errorf("no artifact was kept")
	}
	c, ok := coppiceHost(h)
	if !ok {
		return fmt.Errorf("not a host of package coppice")
	}
	file, err := c.Artifacts().Open(*res.Artifact)
	if err != nil {
		return fmt.Errorf("open the artifact: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(hash, bufio.NewReaderSize(file, 1<<20))
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("read the artifact: %w", err)
	}
	if string(hash.Sum(nil)) != string(want) {
		return fmt.Errorf("the artifact is not what was printed")
	}
	return nil
}

func coppiceHost(h host) (*coppice.Host, bool) {
	switch h := h.(type) {
	case real:
		return h.Host, true
	case planted:
		return coppiceHost(h.host)
	default:
		return nil, false
	}
}

// watchMemory returns a function that ends the watch and says by how many MiB this
// process has grown at most, negative where that is not known.
func watchMemory() func() float64 {
	if ownMemory() == 0 {
		return func() float64 { return -1 }
	}
	before := residentNow()
	most := before
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				most = max(most, residentNow())
			}
		}
	})
	return func() float64 {
		close(stop)
		watch.Wait()
		return float64(most-before) / (1 << 20)
	}
}

const (
	// printsEach is how many lines are printed for each second of the duration.
	printsEach = 200_000
	printsCode = "for i in range(%d): print(i)"
	// deepCode fails in a frame that is a hundred thousand deep.
	deepCode = "import sys\nsys.setrecursionlimit(100_000)\ndef f(n): return f(n + 1)\nf(0)"
)

var prints = Scenario{
	Name: "prints", About: "200,000 small prints for each second of the duration: the processor time of host and session, beside the same Python that writes each of them to a file at once; and how soon an error that is 100,000 frames deep is told",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 1, Duration: time.Second},
		backends.Gateway: {Sessions: 1, Duration: time.Second},
	},
	run: func(ctx context.Context, r *round) error { return r.withArtifacts(ctx, r.prints) },
}

func (r *round) prints(ctx context.Context, h host, sessions []session, dir string) error {
	p, err := processes(ctx, h)
	if err != nil {
		return err
	}
	r.tell("printing")
	lines := int(printsEach * r.Duration.Seconds())
	code := fmt.Sprintf(printsCode, lines)
	children, own, begin := cpuOf(p), ownCPU(), time.Now()
	err = each(ctx, sessions, func(s session) error {
		res, err := coppiceSession(s).Execute(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, Timeout: coppice.NoTimeout})
		if err == nil && (res.Outcome != messages.OutcomeOK || res.Artifact == nil) {
			err = fmt.Errorf("the prints ended %s: %s", res.Outcome, res.Reason)
		}
		return err
	})
	took := time.Since(begin)
	own, children = ownCPU()-own, cpuOf(p)-children
	if err != nil {
		return err
	}
	plain, err := r.plainPrints(ctx, code, filepath.Join(dir, "plain"))
	if err != nil {
		return err
	}
	n := float64(lines * r.Sessions)
	if own > 0 && plain > 0 {
		r.metric("times-plain", "", float64(own+children)/float64(plain)/float64(r.Sessions)*(1+r.Plant), record.Less)
		r.metric("host-cpu", "us/line", float64(own.Nanoseconds())/1000/n, record.None)
		r.metric("session-cpu", "us/line", float64(children.Nanoseconds())/1000/n, record.None)
		r.metric("plain-cpu", "us/line", float64(plain.Nanoseconds())/1000/float64(lines), record.None)
	}
	r.metric("lines", "1/s", n/took.Seconds(), record.More)
	r.tell("failing far down")
	begin = time.Now()
	res, err := sessions[0].Execute(ctx, deepCode)
	if err != nil {
		return err
	}
	if res.Outcome != messages.OutcomeError || len(res.Cells) != 1 || res.Cells[0].Error == nil || res.Cells[0].Error.Name != "RecursionError" {
		return fmt.Errorf("a call of itself a hundred thousand times ended %s: %s", res.Outcome, head(res.Text))
	}
	r.metric("deep-error", "ms", float64(time.Since(begin).Microseconds())/1000, record.Less)
	return nil
}

// plainPrints is the processor time of Python alone that writes each print to a file.
func (r *round) plainPrints(ctx context.Context, code, path string) (used time.Duration, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("make a file to print to: %w", err)
	}
	cmd := exec.CommandContext(ctx, r.Python, "-u", "-c", code)
	cmd.Stdout = f
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("print with Python alone: %w", err)
	} else {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if e := f.Close(); err == nil && e != nil {
		err = fmt.Errorf("write what was printed: %w", e)
	}
	return used, err
}
