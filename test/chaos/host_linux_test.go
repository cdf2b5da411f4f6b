package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/chaos/judge"
)

// plan is what a host under faults does.
type plan struct {
	Backend, Python, Dir string
	Sessions             int
	Seed                 uint64
	// Mark is an argument of every program that cells and commands start: it sleeps for
	// as many seconds.
	Mark string
}

// grace is what an interrupted cell has.
const grace = 2 * time.Second

// work is what a cell does between its two lines.
var work = []string{
	"pass", "pass", "pass",
	"import time; time.sleep(0.05)",
	"import time; time.sleep(0.7)",
	"sum(range(10**6))",
	"import time; time.sleep(60)", // until it is interrupted
	"print('x' * 200_000)",
	"import subprocess; subprocess.run(['sleep', '0.1'])",
	"import subprocess; subprocess.Popen(['sleep', '%[1]s'])",
	"import subprocess; subprocess.Popen(['sleep', '%[1]s'], start_new_session=True, env={})",
	"import os; os.system(\"(setsid sh -c '(env -i setsid sleep %[1]s >/dev/null 2>&1 &)' &)\")",
}

// source is a cell: it tells of its beginning, takes its value, works, and tells of its
// end.
func source(file, call string, cell int, does string) string {
	return fmt.Sprintf(`import os as _os, time as _time
def _say(what, value):
    fd = _os.open(%q, _os.O_WRONLY | _os.O_APPEND | _os.O_CREAT, 0o600)
    try:
        _os.write(fd, f"{what} %s %d {_inc} {value}\n".encode())
    finally:
        _os.close(fd)
try:
    _inc, _n
except NameError:
    _inc, _n = f"{_os.getpid()}-{_time.monotonic_ns()}", 0
_say("B", _n + 1); _n += 1
%s
_say("E", _n)
print(); print(_n)
`, file, call, cell, does)
}

// log writes lines for the judge.
type log struct {
	mu sync.Mutex
	f  *os.File
}

func (l *log) write(line judge.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line.At = time.Now().UnixMilli()
	b, err := json.Marshal(line)
	if err == nil {
		_, err = l.f.Write(append(b, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// beHost runs a host until it is killed.
func beHost(text string) error {
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(p.Dir, "calls.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	host, err := coppice.Start(context.Background(), coppice.Options{
		Backend: backends.Named(p.Backend), Python: p.Python, Home: p.Dir, MaxSessions: p.Sessions, Bash: true, InterruptGrace: grace, StartTimeout: time.Minute,
	})
	if err != nil {
		return err
	}
	l := &log{f: f}
	for n := range p.Sessions {
		go p.session(host, n, l) // ends with the process
	}
	go p.commands(host) // ends with the process
	go func() {         // the machine's pauses as this process has them; ends with the process
		last := time.Now()
		for now := range time.Tick(stillTick) {
			if late := now.Sub(last) - stillTick; late > stillTick {
				l.write(judge.Line{What: "still", Limit: late.Milliseconds()})
			}
			last = now
		}
	}()
	fmt.Fprintln(os.Stdout, "ready")
	select {}
}

// stillTick is how often the host looks whether it stood still.
const stillTick = 100 * time.Millisecond

// session makes calls, one after the other.
func (p plan) session(host *coppice.Host, number int, l *log) {
	name := fmt.Sprintf("s%d", number)
	file := filepath.Join(p.Dir, name+".cells")
	r := rand.New(rand.NewPCG(p.Seed, uint64(number))) //nolint:gosec // it only has to differ
	s := host.Session(name, coppice.In(p.Dir))
	for n := 0; ; n++ {
		call := fmt.Sprintf("%s.%d", name, n)
		var request coppice.Request
		for cell := range 1 + r.IntN(2) {
			does := work[r.IntN(len(work))]
			if strings.Contains(does, "%") {
				does = fmt.Sprintf(does, p.Mark)
			}
			request.Cells = append(request.Cells, messages.Cell{Code: source(file, call, cell, does)})
		}
		limit := time.Duration(1500+r.IntN(6000)) * time.Millisecond
		if p.Backend == backends.Gateway {
			limit *= 4
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		l.write(judge.Line{What: "call", Session: name, Call: call, Cells: len(request.Cells), Limit: limit.Milliseconds()})
		result, err := s.Execute(ctx, request)
		cancel()
		told := judge.Line{Incomplete: strings.Contains(result.Text, "output is not complete"), What: "result", Session: name, Call: call, Outcome: string(result.Outcome), State: string(result.State), Reason: result.Reason}
		if result.Outcome == "" && err != nil {
			told.Reason = err.Error()
		}
		for _, c := range result.Cells {
			lines := strings.Split(strings.TrimSpace(c.Output), "\n")
			told.Printed = append(told.Printed, lines[len(lines)-1])
		}
		l.write(told)
		<-time.After(time.Duration(500+r.IntN(5000)) * time.Millisecond)
	}
}

// commands runs shell commands that start what stays.
func (p plan) commands(host *coppice.Host) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		script := fmt.Sprintf("nohup sleep %[1]s >/dev/null 2>&1 & setsid sleep %[1]s >/dev/null 2>&1 & (env -i setsid sleep %[1]s >/dev/null 2>&1 &) ; sleep 1", p.Mark)
		_, _ = host.Command(ctx, coppice.Command{Script: script})
		cancel()
		<-time.After(3 * time.Second)
	}
}
