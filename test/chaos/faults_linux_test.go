package chaos_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one that descends from a host.
type process struct {
	pid, parent int
	kind        string
	mark        bool // it has the mark among its arguments
}

// look returns the processes of the machine by their parent.
func look(mark string) map[int][]process {
	children := map[int][]process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, _ := strconv.Atoi(filepath.Base(dir))
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil || fields[0][0] == 'Z' || fields[0][0] == 'X' {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		p := process{pid: pid, parent: parent, kind: "other", mark: bytes.Contains(line, []byte("\x00"+mark+"\x00"))}
		switch text := string(line); {
		case strings.Contains(text, "coppice-owner"):
			p.kind = "owner"
		case strings.Contains(text, "coppice-server"):
			p.kind = "session"
		case strings.Contains(text, "kernel_gateway"):
			p.kind = "gateway"
		case strings.Contains(text, "/kernel.py"):
			p.kind = "kernel"
		case strings.HasPrefix(text, "sleep"):
			p.kind = "sleep"
		}
		children[parent] = append(children[parent], p)
	}
	return children
}

// below returns what descends from some processes.
func below(children map[int][]process, roots ...int) []process {
	var all, queue []process
	for _, root := range roots {
		queue = append(queue, children[root]...)
	}
	seen := map[int]bool{}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if seen[p.pid] {
			continue
		}
		seen[p.pid] = true
		for i, c := range children[p.pid] {
			if p.kind == "owner" && c.kind == "session" && len(children[c.pid]) > 0 {
				children[p.pid][i].kind = "fork server"
			}
		}
		all = append(all, p)
		queue = append(queue, children[p.pid]...)
	}
	return all
}

// faults sends signals.
type faults struct {
	host *os.Process
	mark string
	tmp  string // its folder for temporary files
	r    *rand.Rand
	sent map[string]int
	// owners are those that were seen: when the process is killed that guards one, it is
	// no descendant of the host any more.
	owners map[int]bool
	mu     sync.Mutex
	still  [][2]int64     // guarded by mu: when the host was stopped
	halted sync.WaitGroup // those that are continued
}

// strays returns sessions of the host that descend from nothing of it any more.
func (f *faults) strays(machine map[int][]process) []process {
	var all []process
	for _, p := range below(machine, 1) {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if p.kind == "session" && bytes.Contains(env, []byte("TMPDIR="+f.tmp+"\x00")) {
			all = append(all, p)
		}
	}
	return all
}

// below returns what descends from the host.
func (f *faults) below(machine map[int][]process) []process {
	roots := []int{f.host.Pid}
	for pid := range f.owners {
		roots = append(roots, pid)
	}
	all := below(machine, roots...)
	for _, p := range all {
		if p.kind == "owner" {
			f.owners[p.pid] = true
		}
	}
	return all
}

// weighted are the signals, as often as they are sent.
var weighted = []syscall.Signal{
	syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGSEGV,
}

// one sends a signal to a process of a random kind.
func (f *faults) one() {
	machine := look(f.mark)
	all := append(f.below(machine), f.strays(machine)...)
	kinds := map[string][]int{"host": {f.host.Pid}}
	for _, p := range all {
		kinds[p.kind] = append(kinds[p.kind], p.pid)
	}
	names := slices.Sorted(maps.Keys(kinds))
	kind := names[f.r.IntN(len(names))]
	const seldom = 4 // what takes much with it
	if (kind == "owner" || kind == "host") && f.r.IntN(seldom) > 0 {
		for _, often := range []string{"session", "kernel", "other"} {
			if len(kinds[often]) > 0 {
				kind = often
				break
			}
		}
	}
	pid := kinds[kind][f.r.IntN(len(kinds[kind]))]
	sig := weighted[f.r.IntN(len(weighted))]
	if kind == "host" {
		sig = syscall.SIGSTOP
	}
	target, err := os.FindProcess(pid) // a handle of the process: its number may move on
	if err != nil || target.Signal(sig) != nil {
		return
	}
	f.sent[fmt.Sprintf("%s %s", sigName(sig), kind)]++
	switch {
	case sig == syscall.SIGSTOP:
		pause := time.Duration(200+f.r.IntN(1800)) * time.Millisecond
		began := time.Now()
		f.halted.Go(func() {
			<-time.After(pause)
			_ = target.Signal(syscall.SIGCONT) // unless something has ended it
			if kind == "host" {
				f.mu.Lock()
				f.still = append(f.still, [2]int64{began.UnixMilli(), time.Now().UnixMilli()})
				f.mu.Unlock()
			}
		})
	case kind == "owner" && sig == syscall.SIGKILL && f.r.IntN(2) == 0:
		f.other(machine, pid)
	}
}

// other kills the second of the two processes that an owner consists of.
func (f *faults) other(machine map[int][]process, pid int) {
	for parent, children := range machine {
		for _, c := range children {
			if c.kind != "owner" || c.pid != pid && parent != pid || !f.owners[parent] {
				continue
			}
			second := parent
			if parent == pid {
				second = c.pid
			}
			if target, err := os.FindProcess(second); err == nil && target.Kill() == nil {
				f.sent["KILL both of an owner"]++
			}
		}
	}
}

func sigName(s syscall.Signal) string {
	return map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGSTOP: "STOP", syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGSEGV: "SEGV"}[s]
}

// left returns what has the mark or is one of these, and is no zombie.
func (f *faults) left(known []process) []string {
	var found []string
	for _, p := range below(look(f.mark), 1) {
		was := slices.ContainsFunc(known, func(k process) bool {
			return k.pid == p.pid && k.kind == p.kind && k.kind != "other" && k.kind != "sleep"
		})
		if p.mark || was {
			found = append(found, fmt.Sprintf("%s %d", p.kind, p.pid))
		}
	}
	return found
}
