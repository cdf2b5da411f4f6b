package record

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Machine is what the figures of a file depend on.
type Machine struct {
	OS     string `json:"os"`
	Kernel string `json:"kernel,omitempty"`
	Arch   string `json:"arch"`
	CPU    string `json:"cpu,omitempty"`
	CPUs   int    `json:"cpus"`
	// Memory is in bytes, 0 where it is not known.
	Memory int64  `json:"memory"`
	Go     string `json:"go"`
	Python string `json:"python,omitempty"`
	// Virtual says that the machine is one of several on the same hardware.
	Virtual bool `json:"virtual,omitempty"`
}

// ThisMachine describes the machine. python is the interpreter that the
// benchmarks use; "" leaves it out.
func ThisMachine(ctx context.Context, python string) Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if data, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(data))
	}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = field(string(data), "model name")
		m.Virtual = strings.Contains(field(string(data), "flags"), "hypervisor")
	}
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		kib, _, _ := strings.Cut(field(string(data), "MemTotal"), " ")
		if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
			m.Memory = n << 10
		}
	}
	if python != "" {
		if out, err := exec.CommandContext(ctx, python, "-I", "-c", "import sys; print(sys.version.split()[0])").Output(); err == nil {
			m.Python = strings.TrimSpace(string(out))
		}
	}
	return m
}

// field returns the value of the first line "name: value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Load returns the load average over one minute, negative where there is none.
func Load() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	one, _, _ := strings.Cut(string(data), " ")
	v, err := strconv.ParseFloat(one, 64)
	if err != nil {
		return -1
	}
	return v
}

// Commit returns the revision that this program was built from, with a + when the
// tree had changes, and "" when it is not known.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	if len(revision) > 12 {
		revision = revision[:12]
	}
	return revision + dirty
}
