package cgroup

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProcessorOfAGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.Zero(t, Throttled(dir), "nothing is counted")
	require.Zero(t, ProcessorPressure(dir))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("cpu.stat", "usage_usec 9000000\nnr_periods 30\nnr_throttled 20\nthrottled_usec 1500000\nnr_bursts 0\n")
	write("cpu.pressure", "some avg10=3.95 avg60=13.31 avg300=13.38 total=2000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=700000\n")
	write("cgroup.procs", "12\n7\n")
	require.Equal(t, 1500*time.Millisecond, Throttled(dir))
	require.Equal(t, Pressure{Some: 2 * time.Second, All: 700 * time.Millisecond, Recent: .0395, Counted: true}, ProcessorPressure(dir))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pressure"), 0o700))
	write("pressure/cpu", "some avg10=100.00 avg60=0.00 avg300=0.00 total=7000000\n")
	require.Equal(t, Pressure{Some: 7 * time.Second, Recent: 1, Counted: true}, MachinePressure(dir))
	require.Equal(t, Pressure{}, MachinePressure(filepath.Join(dir, "none")))
	pids, err := Members(dir)
	require.NoError(t, err)
	require.Equal(t, []int{12, 7}, pids)
}

func TestParsePressure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Pressure{
		"":                               {},
		"some avg10=0.00 total=5\n":      {Some: 5 * time.Microsecond, Counted: true}, // as of the whole machine, before Linux 5.13
		"some avg10=0.00\nfull total=\n": {},
		"some total=-5":                  {},
		"some avg10=x total=1\n":         {Some: time.Microsecond, Counted: true},
		"some avg10=NaN total=1\n":       {Some: time.Microsecond, Counted: true},
		"some avg10=101 total=1\n":       {Some: time.Microsecond, Counted: true},
		"some total=99999999999999999999\nfull total=9223372036854775807": {},
	} {
		require.Equal(t, want, parsePressure(text), text)
	}
}

// The group of another process is found under our own mounts.
func TestGroupOfAProcess(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	for name, text := range map[string]string{
		"self/mountinfo": "36 35 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"self/cgroup":    "0::/host\n",
		"77/cgroup":      "4:memory:/x\n0::/host/session\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600))
	}
	dir, err := Of(proc, 77)
	require.NoError(t, err)
	require.Equal(t, "/sys/fs/cgroup/host/session", dir)
	_, err = Of(proc, 78)
	var unusable *UnusableError
	require.ErrorAs(t, err, &unusable)
}
