package report

import (
	"fmt"

	"github.com/coppice-run/coppice/bench/record"
)

// target is one line of what Coppice must reach, on a machine with two processors.
type target struct {
	what, target string
	measure      func(record.File) ([]float64, bool)
	met          func([]float64) bool
	show         func([]float64) string
	// reason says why it is missed, as far as it is known.
	reason string
}

// of returns a measure: medians of metrics of one scenario.
func of(scenario, backend string, sessions int, metrics ...string) func(record.File) ([]float64, bool) {
	return func(f record.File) ([]float64, bool) {
		out := make([]float64, len(metrics))
		for i, m := range metrics {
			v, ok := value(f, scenario, backend, sessions, m)
			if !ok {
				return nil, false
			}
			out[i] = v
		}
		return out, true
	}
}

// below says that each value is at most its limit.
func below(limits ...float64) func([]float64) bool {
	return func(v []float64) bool {
		for i, l := range limits {
			if v[i] > l {
				return false
			}
		}
		return true
	}
}

// above says that each value is at least its limit.
func above(limits ...float64) func([]float64) bool {
	return func(v []float64) bool {
		for i, l := range limits {
			if v[i] < l {
				return false
			}
		}
		return true
	}
}

func perSecond(v []float64) string { return number(v[0]) + "/s" }

func ms(v []float64) string {
	s := ""
	for i, x := range v {
		if i > 0 {
			s += " / "
		}
		s += number(x / 1000)
	}
	return s + " ms"
}

func us(v []float64) string { return number(v[0]) + " us" }

func mib(v []float64) string {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return number(sum/1024) + " MiB"
}

func sumBelow(limit float64) func([]float64) bool {
	return func(v []float64) bool {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		return sum <= limit
	}
}

// none says that all values are zero.
func none(v []float64) bool { return below(make([]float64, len(v))...)(v) }

var targets = []target{
	{"runner: new session to first result, p50 / p99", "1 ms / 4 ms", of("create", "runner", 0, "p50", "p99"), below(1000, 4000), ms, "a fork, 480 faults of a page each and Python's part of a session's life are 1.5 ms; the slowest sessions come in a row: they wait for a processor that is busy with others, see a session's life in profiles.md"},
	{"runner: 1,000 new sessions at the same instant, until the last has answered", "1.2 s", of("burst", "runner", 1000, "all"), below(1200), func(v []float64) string { return number(v[0]/1000) + " s" }, "by the processor time of a session's life, of which half is before its first result"},
	{"runner: sessions that begin, answer and end, at full speed", "900/s", of("churn", "runner", 1000, "throughput"), above(900), perSecond, "6.4 ms of a processor each, of which a third are faults of the pages that a session writes to; Python 22 %, the host 16 %, the end 13 %, the fork 7 %: see a session's life in profiles.md"},
	{"runner: the same with spares, p50", "0.5 ms", of("ready", "runner", 0, "p50"), below(500), ms, "one came every 50 ms: as with `exec` at a slow rate, each wake-up of a processor that slept takes longer than the work; without the runtime and one after the other it is 0.9 ms, see runner.md"},
	{"runner: `1+1` through the whole runtime, back to back, p50", "70 us", of("exec", "runner", 1, "back-to-back-p50"), below(70), us, "host and session sleep while the other works, and to wake a processor takes 40 us here, where the host needs 19 us of its own (`exec` on fake): see the path of a call in profiles.md"},
	{"runner: processor time of a call, 1,000 live", "80 us", of("exec", "runner", 1000, "cpu-per-call"), below(80), us, "the host's: system calls, waking goroutines and processors, copying stacks; see profiles.md"},
	{"runner: calls over 1,000 sessions, at full speed", "20,000/s", of("exec", "runner", 1000, "full-speed"), above(20_000), perSecond, "by the processor time of a call: two processors give two seconds a second"},
	{"runner: processor time of a session that waits, 5,000 live", "5 us/s", of("idle", "runner", 5000, "idle-cpu"), below(5), us, "the host's looks at their states, together for those that are due within a tenth of a second; two thirds of it are reads of /proc, see a session that waits in profiles.md"},
	{"runner: that beside a bare pipe, in turns, p50", "at most 25 us more", func(f record.File) ([]float64, bool) {
		ours, floor, ok := beside(f, "runner", "exec-p50")
		return []float64{ours - floor}, ok
	}, below(25), func(v []float64) string { return fmt.Sprintf("%+.0f us", v[0]) }, "the host's code is not in the caches after a sleep: 110 us of what takes 19 when it does not sleep, see the path of a call in profiles.md"},
	{"runner: memory of an idle session, process and host, 2,000 live", "2 MiB", of("idle", "runner", 2000, "process-memory", "host-memory"), sumBelow(2048), mib, "by pages that a session writes to when it starts and answers; Python 3.12 and 3.13 write to fewer, see runner.md"},
	{"runner: the same, 5,000 live", "1.5 MiB", of("idle", "runner", 5000, "process-memory", "host-memory"), sumBelow(1536), mib, "460 to 490 pages that Python 3.11 writes to when it counts references of what a session uses, see what a session wrote to without need in profiles.md"},
	{"runner: live at once in 24 GiB", "10,000", of("idle", "runner", 10_000, "live"), above(10_000), func(v []float64) string { return number(v[0]) }, "the host has two descriptors for each session, and here 20,000 at most; of the memory 0.4 GiB are left by then"},
	{"runner: `coppice run -c 1+1`, a command from nothing to its end, p50", "60 ms", of("cold", "runner", 0, "p50"), below(60_000), ms, "two interpreters start one after the other, the owner's and the fork server's, and the imports of the latter take as long as both, see profiles.md"},
	{"100,000 pretended sessions: memory of an idle one", "4 KiB", of("idle", "fake", 100_000, "host-memory"), below(4), func(v []float64) string { return number(v[0]) + " KiB" }, "a goroutine that waits for the end of its interpreter, contexts, the actor and its mailbox, see profiles.md"},
	{"100,000 pretended sessions, paced, p99", "5 ms", of("exec", "fake", 100_000, "p99"), below(5000), ms, "in some runs the calls are handed to the host as late as that, see 100,000 pretended sessions in profiles.md"},
	{"gateway: `1+1` back to back, p50 / p99", "6 / 15 ms", of("exec", "gateway", 0, "back-to-back-p50", "back-to-back-p99"), below(6000, 15_000), ms, "the kernel's and the gateway's own: a bare client with the same socket options takes nine tenths of it in the same run (`beside`)"},
	{"gateway: that beside a bare client with the same socket options, in turns, p50", "within 5 %", func(f record.File) ([]float64, bool) {
		ours, floor, ok := beside(f, "gateway", "exec-p50")
		if !ok || floor == 0 {
			return nil, false
		}
		return []float64{ours / floor}, true
	}, below(1.05), func(v []float64) string { return fmt.Sprintf("%.2f times", v[0]) }, "sinks, and the numbers by which lost output is found, come on top"},
	{"gateway: 30 kernels paced, p99", "20 ms", of("exec", "gateway", 30, "p99"), below(20_000), ms, "14 to 46 ms in three rounds: a call takes 7 ms of a processor, and one that comes while three others are served waits for them"},
	{"gateway: new session to first result, cold, p50 beside the bare POST, dial and call, in turns", "at most 10 ms more", func(f record.File) ([]float64, bool) {
		ours, floor, ok := beside(f, "gateway", "create-p50")
		return []float64{ours - floor}, ok
	}, below(10_000), ms, "what is the session's own is brought into the new kernel before its first call"},
	{"gateway: new session to first result, cold, p50", "70 ms", of("create", "gateway", 0, "p50"), below(70_000), ms, "39 ms of the kernel between its fork and its first message are IPython making its shell, 25 the gateway's: see kernels that are forked in profiles.md"},
	{"gateway: 150 new sessions at the same instant, until the last has answered", "6 s", of("burst", "gateway", 150, "all"), below(6000), func(v []float64) string { return number(v[0]/1000) + " s" }, "by the processor time of one, of which two processors give two seconds a second"},
	{"gateway: memory of an idle kernel, with its part of gateway and host, 100 live", "16 MiB", of("idle", "gateway", 100, "process-memory", "host-memory"), sumBelow(16 << 10), mib, "pages that IPython writes to when it makes its shell and its traits, and counts references of"},
	{"gateway: new session to first result where a warm kernel waits, p50", "10 ms", of("ready", "gateway", 0, "p50"), below(10_000), ms, "three round trips: whether the kernel that waited still lives, what is the session's own, and the call; each takes 5 to 8 ms, as `exec` shows"},
	{"kernel death to the answer, runner / gateway, p50", "0.7 s", func(f record.File) ([]float64, bool) {
		a, ok := value(f, "crashy", "runner", 0, "death-to-answer-p50")
		b, also := value(f, "crashy", "gateway", 0, "death-to-answer-p50")
		return []float64{a, b}, ok && also
	}, below(700_000, 700_000), ms, ""},
	{"kernel death to the answer, a Kernel Gateway as it comes, p50", "3.5 s", of("default-server", "gateway", 0, "death-to-answer-p50"), below(3.5e6), ms, ""},
	{"runner: interrupt to the result, loop / sleep / await, p50", "30 ms", of("interrupt", "runner", 0, "loop-p50", "sleep-p50", "await-p50"), below(30_000, 30_000, 30_000), ms, ""},
	{"gateway: interrupt to the result, loop / sleep / await, p50", "30 ms", of("interrupt", "gateway", 0, "loop-p50", "sleep-p50", "await-p50"), below(30_000, 30_000, 30_000), ms, "what IPython does between the signal and its reply"},
	{"interrupt in a flood of output to the result, runner / gateway, p99", "1 s", func(f record.File) ([]float64, bool) {
		a, ok := value(f, "interrupt", "runner", 0, "flood-p99")
		b, also := value(f, "interrupt", "gateway", 0, "flood-p99")
		return []float64{a, b}, ok && also
	}, below(1e6, 1e6), ms, ""},
	{"runner: flood, growth of the host, artifact identical", "64 MiB", of("flood", "runner", 0, "host-growth"), below(64), func(v []float64) string { return number(v[0]) + " MiB" }, ""},
	{"flood, runner / gateway", "250 / 120 MiB/s", func(f record.File) ([]float64, bool) {
		a, ok := value(f, "flood", "runner", 0, "throughput")
		b, also := value(f, "flood", "gateway", 0, "throughput")
		return []float64{a, b}, ok && also
	}, above(250, 120), func(v []float64) string { return number(v[0]) + " / " + number(v[1]) + " MiB/s" }, "the encoding of text that is not ASCII, and on the gateway strings of JSON and copies in kernel and gateway, which alone take nearly all that two processors have in that time; see a flood in profiles.md"},
	{"a million prints, runner / gateway: processor time beside `python -u` into a file", "1.5 / 3 times", func(f record.File) ([]float64, bool) {
		a, ok := value(f, "prints", "runner", 0, "times-plain")
		b, also := value(f, "prints", "gateway", 0, "times-plain")
		return []float64{a, b}, ok && also
	}, below(1.5, 3), func(v []float64) string { return fmt.Sprintf("%.2f / %.2f times", v[0], v[1]) }, "0.6 us of the session and 0.2 of the host for a line, beside 1.5 us of the plain one; it was 1.46 times on another day"},
	{"an error 100,000 frames deep is told, runner / gateway", "1 s", func(f record.File) ([]float64, bool) {
		a, ok := value(f, "prints", "runner", 0, "deep-error")
		b, also := value(f, "prints", "gateway", 0, "deep-error")
		return []float64{a, b}, ok && also
	}, below(1000, 1000), func(v []float64) string { return number(v[0]) + " / " + number(v[1]) + " ms" }, ""},
	{"gateway: flood, growth of the host, artifact identical", "64 MiB", of("flood", "gateway", 0, "host-growth"), below(64), func(v []float64) string { return number(v[0]) + " MiB" }, "the suite, of which the host is a part, has a larger heap after fifty steps and grows by as much until it collects; as a step of its own it is 17 to 36 MiB"},
	{"10,000 pretended sessions under crashes: calls lost, repeated or out of order", "0", complete("crashy"), none, func(v []float64) string { return number(v[0]) }, ""},
	{"10,000 pretended sessions under evictions: calls lost, repeated or out of order", "0", complete("evict"), none, func(v []float64) string { return number(v[0]) }, ""},
}

// beside returns what ours and its floor took when they were measured in turns.
func beside(f record.File, backend, metric string) (ours, floor float64, ok bool) {
	ours, ok = value(f, "beside", backend, 0, metric)
	floor, also := value(f, "beside", backend, 0, "floor-"+metric)
	return ours, floor, ok && also
}

// complete measures 0 for a scenario that ended well, with 10,000 sessions, and 1
// for one that failed: a scenario fails with the first call that goes wrong.
func complete(scenario string) func(record.File) ([]float64, bool) {
	return func(f record.File) ([]float64, bool) {
		found, failed := false, 0.0
		for _, r := range f.Results {
			if r.Scenario == scenario && r.Backend == "fake" && r.Sessions >= 10_000 {
				found = true
				if r.Error != "" {
					failed++
				}
			}
		}
		return []float64{failed}, found
	}
}
