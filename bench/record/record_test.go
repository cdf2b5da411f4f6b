package record_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
)

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	f := record.File{
		Made: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Machine: record.ThisMachine(t.Context(), ""), Command: "bench",
		Results: []record.Result{{
			Scenario: "exec", Backend: "runner", Sessions: 10, Round: 1, Took: time.Second, Metrics: []record.Metric{{Name: "p50", Unit: "us", Value: 1.5, Better: record.Less}},
			Curves: map[string]load.Summary{"latency": {Count: 1, Curve: []load.Point{{Quantile: 50, At: 3}}}}, Notes: []string{"a note"},
		}},
	}
	path := filepath.Join(t.TempDir(), "deep", "r.json")
	require.NoError(t, record.Writable(path))
	require.Error(t, record.Writable(filepath.Join(os.DevNull, "r.json")))
	require.NoError(t, f.Write(path))
	got, err := record.Read(path)
	require.NoError(t, err)
	f.Format = record.Format
	require.Empty(t, cmp.Diff(f, got))
	v, ok := got.Results[0].Metric("p50")
	require.True(t, ok)
	require.InDelta(t, 1.5, v, 0)
	_, ok = got.Results[0].Metric("none")
	require.False(t, ok)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing temporary is left")
}

func TestAnotherFileIsRefused(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "x", "another format": `{"format": 7}`, "no format": `{}`, "another type": `[]`} {
		t.Run(name, func(t *testing.T) {
			_, err := record.Parse([]byte(text))
			require.ErrorIs(t, err, record.ErrFormat)
		})
	}
	_, err := record.Read(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTheMachineIsDescribed(t *testing.T) {
	m := record.ThisMachine(t.Context(), "")
	require.Positive(t, m.CPUs)
	require.NotEmpty(t, m.Go)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format": 1, "results": [{"scenario": "x", "curves": {"a": {"curve": [{"q": 1}]}}}]}`))
	f.Add([]byte(`{"format": 1, "results": [{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := record.Parse(data)
		if err != nil {
			require.ErrorIs(t, err, record.ErrFormat)
			return
		}
		for _, r := range got.Results {
			_ = r.Name()
			_, _ = r.Metric("p50")
		}
	})
}
