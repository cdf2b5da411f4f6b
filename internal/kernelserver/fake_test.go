package kernelserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

const taken = "The port {port} is already in use, trying another port.\n" +
	"ERROR: the notebook server could not be started because no available port could be found.\n"

func TestLaunchAndStop(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	var lines []string
	s := launch(t, kernelserver.Options{
		Runtime: fake{Prints: "token={token}\nunfinished"}.install(t), TempDir: base,
		Output: func(l string) { lines = append(lines, l) },
	})
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, s.URL())
	require.Regexp(t, `^[0-9a-f]{64}$`, s.Token())
	require.True(t, process.Alive(s.Identity()))
	require.NoError(t, s.Err())
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s)} {
		require.NotContains(t, shown, s.Token())
	}
	dirs, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	info, err := dirs[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|0o700, info.Mode())

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _ = s.Stop(context.Background()) })
	}
	wg.Wait()
	<-s.Done()
	require.NoError(t, s.Err(), "an end that was asked for is not an error")
	require.False(t, process.Alive(s.Identity()))
	require.Equal(t, []string{"token=[token]", "unfinished"}, s.Tail(5))
	require.Equal(t, []string{"token=[token]"}, lines)
	emptyDir(t, base)
}

func TestLaunchFailures(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	tests := []struct {
		name   string
		fake   fake
		opts   kernelserver.Options
		cancel bool
		want   string
		cause  error
		starts int // 0 where the time might end before the start is noted
	}{
		{
			name: "it ends at once, with the reason", fake: fake{Prints: "No module named kernel_gateway, token={token}\n\n", Exits: true, Code: 1}, starts: 1,
			want: "start a kernel gateway: it exited with code 1 (its last line: No module named kernel_gateway, token=[token])",
		},
		{
			name: "it ends without an error", fake: fake{Exits: true}, starts: 1,
			want: "start a kernel gateway: it exited with code 0",
		},
		{
			name: "every port is taken", fake: fake{Prints: taken, Exits: true, Code: 1}, starts: 5,
			want: "start a kernel gateway: it exited with code 1 (its last line: ERROR: the notebook server could not be started because no available port could be found.)",
		},
		{
			name: "it never answers", fake: fake{Deaf: true, Stubborn: true}, opts: kernelserver.Options{Start: opportunity.Budget{Opportunity: time.Second}},
			want: "start a kernel gateway: it gave no answer in ",
		},
		{
			name: "another server answers", fake: fake{Foreign: true}, opts: kernelserver.Options{Start: opportunity.Budget{Opportunity: 2 * time.Second}},
			want: ": another server answers on its port",
		},
		{
			name: "the caller gives up", fake: fake{Deaf: true, Prints: "here I am\n"}, cancel: true, starts: 1,
			want: "start a kernel gateway: given up: enough", cause: enough,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := tt.opts
			o.Runtime, o.TempDir = tt.fake.install(t), shortDir(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.cancel {
				o.Output = func(string) { cancel(enough) }
			}
			_, err := kernelserver.Launch(ctx, o)
			var failed *kernelserver.LaunchError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, err.Error(), tt.want)
			if tt.cause != nil {
				require.ErrorIs(t, err, tt.cause)
			}
			if tt.starts > 0 {
				require.Equal(t, tt.starts, starts(t, o.Runtime))
			}
			left, err := process.Holding(o.Runtime.Path)
			require.NoError(t, err)
			require.Empty(t, left, "nothing of a failed start is left")
			emptyDir(t, o.TempDir)
		})
	}
}

func TestLaunchTriesAnotherPort(t *testing.T) {
	t.Parallel()
	rt := fake{Prints: taken, Exits: true, Code: 1, Times: 2}.install(t)
	s := launch(t, kernelserver.Options{Runtime: rt})
	require.Equal(t, 3, starts(t, rt))
	require.True(t, process.Alive(s.Identity()))
}

func TestLaunchRefusesALongPath(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 60))
	_, err := kernelserver.Launch(t.Context(), kernelserver.Options{Runtime: fake{}.install(t), TempDir: long})
	require.ErrorContains(t, err, "is too long for the sockets of kernels")
}

func TestExplicitToken(t *testing.T) {
	t.Parallel()
	s := launch(t, kernelserver.Options{Runtime: fake{}.install(t), Token: "mine"})
	require.Equal(t, "mine", s.Token())
}

func TestStopKillsAStubbornGateway(t *testing.T) {
	t.Parallel()
	s := launch(t, kernelserver.Options{Runtime: fake{Stubborn: true}.install(t)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, s.Stop(ctx))
	require.False(t, process.Alive(s.Identity()))
}

func TestEndByItself(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	s := launch(t, kernelserver.Options{Runtime: fake{Prints: "out of luck\n"}.install(t), TempDir: base})
	require.Empty(t, process.KillAll(t.Context(), []process.Identity{s.Identity()}))
	<-s.Done()
	var exited *kernelserver.ExitedError
	require.ErrorAs(t, s.Err(), &exited)
	require.Equal(t, []string{"out of luck"}, exited.Tail)
	require.EqualError(t, s.Err(), "the kernel gateway was ended by signal 9 (killed) (its last line: out of luck)")
	require.NoError(t, s.Stop(t.Context()))
	emptyDir(t, base)
}

func TestKernelEnv(t *testing.T) {
	t.Parallel()
	rt := fake{}.install(t)
	s := launch(t, kernelserver.Options{Runtime: rt})
	given := map[string]string{"KERNEL_X": "1", "PI_SESSION_FILE": "/s", "PI_TOOL_BRIDGE_TOKEN": "t", "HOME": "/h"}
	require.Empty(t, cmp.Diff(map[string]string{"KERNEL_X": "1", "PI_SESSION_FILE": "/s"}, s.KernelEnv(given)))
	require.Len(t, given, 4, "the argument is not changed")
	require.NotNil(t, s.KernelEnv(nil), "a POST must carry it also when it is empty")
}

func TestSweepRemovesWhatKilledHostsLeft(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	self, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	dead := process.Identity{PID: self.PID, Start: "1@before"}
	for name, owner := range map[string]any{"cpk-dead": dead, "cpk-alive": self, "cpk-unknown": process.Identity{}, "other": dead, "cpk-nonsense": "?"} {
		dir := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "r"), 0o700))
		data, err := json.Marshal(owner)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "owner.json"), data, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(base, "cpk-empty"), 0o700))
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"cpk-old", "cpk-odd"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o700))
		if name == "cpk-odd" {
			require.NoError(t, os.WriteFile(filepath.Join(base, name, "x"), nil, 0o600))
		}
		require.NoError(t, os.Chtimes(filepath.Join(base, name), long, long))
	}
	require.NoError(t, os.Symlink(filepath.Join(base, "other"), filepath.Join(base, "cpk-link")))

	s := launch(t, kernelserver.Options{Runtime: fake{}.install(t), TempDir: base})
	require.NoError(t, s.Stop(t.Context()))
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Empty(t, cmp.Diff([]string{"cpk-alive", "cpk-empty", "cpk-link", "cpk-nonsense", "cpk-odd", "cpk-unknown", "other"}, names))
}
