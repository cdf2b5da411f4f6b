package report

import (
	"math"

	"github.com/coppice-run/coppice/bench/record"
)

// demand is what one idle session costs, and what one call does.
type demand struct {
	backend string
	memory  float64 // bytes
	files   float64 // descriptors of the host process
	pids    float64 // processes and threads
	cpu     float64 // seconds of processor time for a call of 1+1, host and Python
}

// Hosts that the model is asked about.
var hosts = []struct {
	name   string
	cpus   float64
	memory float64 // bytes
}{
	{"2 processors, 24 GiB", 2, 24 << 30},
	{"16 processors, 128 GiB", 16, 128 << 30},
	{"64 processors, 512 GiB", 64, 512 << 30},
}

// The limits of a Linux system as it comes, and how much of the memory sessions may
// take.
const (
	usable   = .85
	noFile   = 1 << 20 // fs.nr_open, which the host raises its own limit to
	pidMax   = 4 << 20 // kernel.pid_max of a large machine; 32,768 on a small one
	smallPID = 32_768
)

// fit returns intercept and slope of a line through points, by least squares.
func fit(points []point) (base, each float64) {
	var sx, sy, sxx, sxy float64
	n := float64(len(points))
	for _, p := range points {
		sx, sy, sxx, sxy = sx+p.x, sy+p.y, sxx+p.x*p.x, sxy+p.x*p.y
	}
	d := n*sxx - sx*sx
	if len(points) < 2 || d == 0 {
		if n == 0 || sx == 0 {
			return 0, 0
		}
		return 0, sy / sx
	}
	each = (n*sxy - sx*sy) / d
	return (sy - each*sx) / n, each
}

// model writes what the figures say of larger machines, and how well the model
// predicts the points that it was not made from.
func (t *text) model(f record.File) {
	var all []point // sessions, bytes of all of them
	for _, g := range group(pick(f, func(r record.Result) bool { return r.Scenario == "idle" && r.Backend == "runner" })) {
		process, host := g.values["process-memory"], g.values["host-memory"]
		if len(process) > 0 && len(host) > 0 {
			all = append(all, point{float64(g.sessions), (median(process) + median(host)) * 1024 * float64(g.sessions)})
		}
	}
	if len(all) < 2 {
		return
	}
	last := all[len(all)-1]
	base, each := fit(all[:len(all)-1])
	if len(all) == 2 {
		base, each = fit(all)
	}
	predicted := base + each*last.x
	t.add("## On larger machines\n")
	t.add("A model, not a measurement: memory grows by a fixed part and %s KiB for each session, a line through the points below %s sessions. It predicts %s MiB for %s; %s MiB were measured (%+.0f %%).\n",
		grouped(math.Round(each/1024)), grouped(last.x), grouped(math.Round(predicted/(1<<20))), grouped(last.x), grouped(math.Round(last.y/(1<<20))), 100*(predicted/last.y-1))
	runner := demand{"runner", each, 6, 3, 0}
	if v, ok := value(f, "exec", "runner", 1, "back-to-back-p50"); ok {
		runner.cpu = v / 1e6 // a caller that does nothing else keeps one processor busy for that time
	}
	rows := []demand{runner}
	if v, ok := value(f, "idle", "gateway", 0, "process-memory"); ok {
		g := demand{"gateway", v * 1024, 2, 14, 0}
		if v, ok := value(f, "exec", "gateway", 0, "back-to-back-p50"); ok {
			g.cpu = v / 1e6
		}
		rows = append(rows, g)
	}
	t.add("| host | backend | live sessions, by memory | by descriptors | by processes and threads | what binds first | calls of 1+1 in a second |\n| --- | --- | ---: | ---: | ---: | --- | ---: |")
	for _, h := range hosts {
		for _, d := range rows {
			memory, files, pids := h.memory*usable/d.memory, noFile/d.files, pidMax/d.pids
			if h.cpus <= 2 {
				pids = smallPID / d.pids
			}
			first, most := "memory", memory
			if files < most {
				first, most = "descriptors", files
			}
			if pids < most {
				first = "processes and threads (kernel.pid_max)"
			}
			calls := ""
			if d.cpu > 0 {
				calls = grouped(math.Round(h.cpus / d.cpu))
			}
			t.add("| %s | %s | %s | %s | %s | %s | %s |", h.name, d.backend, grouped(math.Floor(memory)), grouped(math.Floor(files)), grouped(math.Floor(pids)), first, calls)
		}
	}
	t.add(`
One Kernel Gateway holds at most 150 kernels: 6 of the 1,023 sockets of its ZeroMQ context are taken by each. More
hosts, each with a gateway of its own, or the runner backend, go beyond that. What moves the other limits: memory by
` + "`Options.MaxSessions`, `IdleTTL` and `MaxRSS`" + `; descriptors by ` + "`ulimit -n`" + `; processes and threads by ` + "`kernel.pid_max` and `ulimit -u`" + `. A
fleet multiplies hosts: sessions share nothing between them, and a host is chosen once, by the session's key.
`)
}
