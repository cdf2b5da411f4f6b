package report

import (
	"math"

	"github.com/coppice-run/coppice/bench/record"
)

// A model of what n idle sessions and their calls take of a host. Each figure is a
// line through measured points, base + each*n; the largest point of each is kept
// out of it, where there are three, to see how well the line predicts.
type model struct {
	backend string
	// memory is in bytes, hostFiles and serverFiles are descriptors of two
	// processes, threads those of all sessions' processes, idle seconds of
	// processor time in a second.
	memory, hostFiles, serverFiles, threads, idle *fitted
	// call is seconds of processor time for one 1+1, at full speed with few
	// sessions; 0: not measured.
	call float64
}

// fitted is a line through measured points and what it says of the point that was
// kept out of it.
type fitted struct {
	base, each float64
	from       []point
	// kept is the point kept out; x is 0 when there is none.
	kept point
}

// at is the figure of n sessions.
func (f *fitted) at(n float64) float64 { return f.base + f.each*n }

// most is how many sessions a limit allows, infinitely many when they take none.
func (f *fitted) most(limit float64) float64 {
	if f == nil || f.each <= 0 {
		return math.Inf(1)
	}
	return math.Max(0, math.Floor((limit-f.base)/f.each))
}

// fit returns the line through points, nil without points. A figure is for one
// session; points are of all of them.
func fit(points []point) *fitted {
	f := &fitted{from: points}
	switch {
	case len(points) == 0:
		return nil
	case len(points) > 2:
		f.from, f.kept = points[:len(points)-1], points[len(points)-1]
	}
	f.base, f.each = leastSquares(f.from)
	return f
}

// leastSquares weighs each point with 1/x²: each session counts the same, in a
// measurement of ten as in one of thousands. One point makes a line through zero.
func leastSquares(points []point) (base, each float64) {
	var w, sx, sy, sxx, sxy float64
	for _, p := range points {
		if p.x <= 0 {
			continue
		}
		k := 1 / (p.x * p.x)
		w, sx, sy, sxx, sxy = w+k, sx+k*p.x, sy+k*p.y, sxx+k*p.x*p.x, sxy+k*p.x*p.y
	}
	d := w*sxx - sx*sx
	if len(points) < 2 || d <= 1e-12*w*sxx {
		if sxx == 0 {
			return 0, 0
		}
		return 0, sxy / sxx
	}
	each = (w*sxy - sx*sy) / d
	return (sy - each*sx) / w, each
}

// modelOf makes the model of a backend, nil when its memory was not measured.
func modelOf(f record.File, backend string) *model {
	m := &model{backend: backend}
	points := func(unit float64, metrics ...string) []point {
		var out []point
		for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == "idle" && r.Backend == backend })) {
			sum, n := 0.0, float64(g.sessions)
			for _, name := range metrics {
				if len(g.values[name]) == 0 {
					sum = math.NaN()
					break
				}
				sum += median(g.values[name])
			}
			if !math.IsNaN(sum) && n > 0 {
				out = append(out, point{n, sum * unit * n})
			}
		}
		return out
	}
	m.memory = fit(points(1024, "process-memory", "host-memory"))
	if m.memory == nil || m.memory.each <= 0 {
		return nil
	}
	m.hostFiles, m.serverFiles = fit(points(1, "host-files")), fit(points(1, "server-files"))
	m.threads, m.idle = fit(points(1, "session-threads")), fit(points(1e-6, "idle-cpu"))
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == "exec" && r.Backend == backend })) {
		// One session keeps one processor busy: enough callers need some sessions.
		if v := g.values["cpu-per-call"]; len(v) > 0 && g.sessions >= 4*max(1, f.Machine.CPUs) {
			m.call = median(v) / 1e6
			break
		}
	}
	return m
}

// machine is what a host has.
type machine struct {
	name   string
	cpus   float64
	memory float64 // bytes
	// pids and files are limits of the system as it comes: what systemd sets
	// kernel.pid_max to, or the kernel without it, and fs.nr_open.
	pids, files float64
}

// machines that the model is asked about.
var machines = []machine{
	{"2 processors, 24 GiB, pid_max as the kernel sets it", 2, 24 << 30, 32_768, 1 << 20},
	{"16 processors, 128 GiB", 16, 128 << 30, 4 << 20, 1 << 20},
	{"64 processors, 512 GiB", 64, 512 << 30, 4 << 20, 1 << 20},
}

const (
	// usable is the part of the memory that sessions may take.
	usable = .85
	// idleShare is the part of the processors that sessions which wait may take.
	idleShare = .5
	// threadMemory is the memory for each thread that the kernel allows:
	// kernel.threads-max is a 131,072nd of the bytes.
	threadMemory = 128 << 10
	// perGateway is how many kernels one Kernel Gateway holds: each takes 6 of the
	// 1,023 sockets of its ZeroMQ context.
	perGateway = 150
)

// bound is one limit of a host and how many sessions it allows.
type bound struct {
	name string
	most float64
	move string // what moves it
}

// bounds lists the limits, each alone.
func (m *model) bounds(h machine) []bound {
	return []bound{
		{"memory", m.memory.most(h.memory * usable), "a shorter `IdleTTL` ends sessions that wait, `MaxRSS` those that are large"},
		{"processor time of sessions that wait", m.idle.most(h.cpus * idleShare), "a longer `Heartbeat`"},
		{"descriptors of a process", math.Min(m.hostFiles.most(h.files), m.serverFiles.most(h.files)), "`ulimit -n`, up to fs.nr_open"},
		{"processes and threads", m.threads.most(math.Min(h.pids, h.memory/threadMemory)), "`kernel.pid_max`, `kernel.threads-max`, `ulimit -u`, pids.max of the cgroup"},
	}
}

// first is the limit that binds first.
func first(all []bound) bound {
	out := all[0]
	for _, b := range all[1:] {
		if b.most < out.most {
			out = b
		}
	}
	return out
}

// calls is how many 1+1 a host with n live sessions answers in a second, when
// the processors are all that is short; negative when it is not known.
func (m *model) calls(h machine, n float64) float64 {
	if m.call <= 0 {
		return -1
	}
	idle := 0.0
	if m.idle != nil {
		idle = math.Max(0, m.idle.at(n))
	}
	return math.Max(0, h.cpus-idle) / m.call
}
