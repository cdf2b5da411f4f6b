package e2b

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
)

// sample is what a sandbox uses at a moment.
type sample struct {
	At        time.Time `json:"timestamp"`
	Unix      int64     `json:"timestampUnix"`
	CPUs      int       `json:"cpuCount"`
	CPU       float64   `json:"cpuUsedPct"` // of one processor, since the sample before
	Memory    int64     `json:"memUsed"`
	MemoryAll int64     `json:"memTotal"`
	Cache     int64     `json:"memCache"`
	Disk      int64     `json:"diskUsed"`
	DiskAll   int64     `json:"diskTotal"`
}

// keptSamples is how many are kept of one sandbox.
const keptSamples = 512

// usage is what is known of a sandbox's use. A sample is taken when a client asks.
type usage struct {
	mu      sync.Mutex
	samples []sample  // guarded by mu
	seconds float64   // how long its processes had computed at the last sample; guarded by mu
	at      time.Time // of the last sample; guarded by mu
}

// memory is how much a sandbox may have, in bytes.
func (s *sandbox) memory() int64 {
	if l := s.w.Limits().Memory; l > 0 {
		return l
	}
	return memoryTotal()
}

// disk is how much its files may have, in bytes.
func (s *sandbox) disk() int64 {
	if i := s.w.Info(); i.Quota > 0 {
		return i.Quota
	}
	return diskTotal(s.w.Folder())
}

// measure takes a sample.
func (a *API) measure(ctx context.Context, s *sandbox) (sample, error) {
	now := time.Now()
	one := sample{At: now, Unix: now.Unix(), CPUs: runtime.NumCPU(), MemoryAll: s.memory(), DiskAll: s.disk()}
	sessions, err := a.o.Host.Sessions(ctx)
	if err != nil {
		return one, err
	}
	var pids []int
	for _, live := range sessions {
		if live.Key.Workspace == s.w.Name() && live.PID > 0 {
			pids = append(pids, live.PID)
		}
	}
	for _, p := range s.w.Processes() {
		if _, over := p.Exit(); !over {
			pids = append(pids, p.PID())
		}
	}
	seconds := 0.0
	for _, pid := range pids {
		computed, resident := used(pid)
		seconds += computed
		one.Memory += resident
	}
	if f, err := s.w.Files(); err == nil {
		if one.Disk, err = f.Usage(ctx); err != nil {
			return one, err
		}
	}
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	if since := now.Sub(s.usage.at).Seconds(); !s.usage.at.IsZero() && since > 0 {
		one.CPU = max(0, 100*(seconds-s.usage.seconds)/since)
	}
	s.usage.seconds, s.usage.at = seconds, now
	s.usage.samples = append(s.usage.samples, one)
	if n := len(s.usage.samples); n > keptSamples {
		s.usage.samples = append(s.usage.samples[:0], s.usage.samples[n-keptSamples:]...)
	}
	return one, nil
}

// metrics tells what a sandbox uses now, and what it used when a client asked before.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) {
	s := a.named(w, r)
	if s == nil {
		return
	}
	if _, err := a.measure(r.Context(), s); err != nil {
		refuse(w, err)
		return
	}
	bound := func(name string, none int64) int64 {
		if n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64); err == nil {
			return n
		}
		return none
	}
	from, to := bound("start", 0), bound("end", 1<<62)
	list := []sample{}
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	for _, one := range s.usage.samples {
		if one.Unix >= from && one.Unix <= to {
			list = append(list, one)
		}
	}
	answer.JSON(w, http.StatusOK, list)
}
