//go:build linux

package displays_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestLibrariesOnDisk: what pandas, NumPy and matplotlib hold comes back from disk as it
// was. COPPICE_TEST_FULL=1 makes the frame one of 100 MiB.
func TestLibrariesOnDisk(t *testing.T) {
	t.Parallel()
	rows := 20_000
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		rows = 100 << 20 / 8 / 8
	}
	host, err := coppice.Start(t.Context(), coppice.Options{
		Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Home: t.TempDir(), Hibernate: hibernate.Lossless,
		Env: append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	s := host.Session("s")
	run := func(code string) messages.Result {
		r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		return r
	}
	run(fmt.Sprintf(`import sys; sys.path.append(%q)
import numpy as np, pandas as pd
import matplotlib; matplotlib.use("agg")
from matplotlib.figure import Figure
np.random.seed(4)
frame = pd.DataFrame(np.arange(%d * 8.0).reshape(-1, 8), columns=list("abcdefgh"))
frame["text"] = "t"
sums = frame.sum(numeric_only=True)
array = np.arange(100_000)
part = array[10:50_000:2]
picture = Figure()
picture.subplots().plot([1, 2, 3])
fortran = np.asfortranarray(np.ones((300, 400)))
`, testpython.Extras(t), rows))
	for range 2 {
		report, err := s.Hibernate(t.Context())
		require.NoError(t, err)
		require.Empty(t, report.Lost)
		require.Empty(t, report.Changed)
		require.Greater(t, report.Bytes, int64(rows*8*8))
		r := run(`import io
out = io.BytesIO()
picture.savefig(out, format="png")
array[10] = -1
(bool((frame.sum(numeric_only=True) == sums).all()), int(part[0]), len(out.getvalue()) > 1000, fortran.flags.f_contiguous, array.flags.writeable, float(np.random.rand()) >= 0, frame.text[0])`)
		require.Equal(t, messages.StateRestored, r.State)
		require.Contains(t, r.Text, "(True, -1, True, True, True, True, 't')")
	}
}
