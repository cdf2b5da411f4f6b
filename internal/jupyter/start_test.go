package jupyter_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/test/fakegateway"
)

func TestStart(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	var stages []string
	k, err := c.Start(within(t), jupyter.StartRequest{
		Name: "python3", Env: map[string]string{"KERNEL_X": "1"},
		OnStage: func(s string) { stages = append(stages, s) },
	})
	require.NoError(t, err)
	require.Equal(t, []string{jupyter.StageCreate, jupyter.StageConnect, jupyter.StageVerify}, stages)
	require.Equal(t, s.Live()[0].ID(), k.ID())
	require.NotEmpty(t, k.KernelSession())
	require.Equal(t, jupyter.KernelInfo{
		Protocol: "5.3", Implementation: "fake", ImplementationVersion: "1",
		Language: "python", LanguageVersion: "3.11.7", Features: []string{"debugger"},
	}, k.Info())
	body := s.Creates()[0]
	require.Equal(t, "python3", body["name"])
	require.Equal(t, map[string]any{"KERNEL_X": "1"}, body["env"])
	require.Equal(t, k.ID(), body["kernel_id"])

	require.NoError(t, k.Delete(within(t)))
	require.NoError(t, k.Delete(within(t)))
	require.Empty(t, s.Live())
	await(t, k.Done())
}

// A server that chooses the id itself is as good.
func TestStartWithForeignID(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{IgnoreID: true}})
	k := startKernel(t, c)
	require.Equal(t, s.Live()[0].ID(), k.ID())
	require.NotEqual(t, s.Creates()[0]["kernel_id"], k.ID())
}

// The first kernel_info gets its reply, but its idle is lost: the server had
// not subscribed yet.
func TestStartIsVerifiedOnIOPub(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{LoseIdle: 2}})
	startKernel(t, c)
	require.GreaterOrEqual(t, s.Live()[0].Received("kernel_info_request"), 3)
}

func TestSlowHandshake(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{HoldHandshake: hold}})
	polled := func() bool {
		return slices.ContainsFunc(s.Requests(), func(r string) bool {
			return strings.HasPrefix(r, "GET /api/kernels/") && !strings.HasSuffix(r, "/channels")
		})
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for !polled() {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(tick):
			}
		}
		close(hold)
	})
	startKernel(t, c)
	wg.Wait()
}

// Every way in which a start can fail leaves no kernel behind.
func TestFailedStarts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		faults fakegateway.Faults
		change func(*jupyter.Options)
		check  func(t *testing.T, err error)
	}{
		"dies at birth": {
			faults: fakegateway.Faults{DieAtBirth: true},
			check: func(t *testing.T, err error) {
				var lost *jupyter.LostError
				require.ErrorAs(t, err, &lost)
				require.Contains(t, err.Error(), "died while it started")
			},
		},
		"create refused": {
			faults: fakegateway.Faults{Status: map[string]int{"create": 403}, Body: "Resource Limit"},
			check:  func(t *testing.T, err error) { require.ErrorIs(t, err, jupyter.ErrKernelLimit) },
		},
		"create failed": {
			faults: fakegateway.Faults{Status: map[string]int{"create": 500}},
			check: func(t *testing.T, err error) {
				var status *jupyter.StatusError
				require.ErrorAs(t, err, &status)
				require.Equal(t, 500, status.Code)
				require.NotContains(t, err.Error(), "secret")
			},
		},
		"create unauthorized": {
			faults: fakegateway.Faults{Status: map[string]int{"create": 401}},
			check:  func(t *testing.T, err error) { require.ErrorIs(t, err, jupyter.ErrUnauthorized) },
		},
		"the answer is lost": {
			faults: fakegateway.Faults{LoseCreateAnswer: true},
			check: func(t *testing.T, err error) {
				var un *jupyter.UnreachableError
				require.ErrorAs(t, err, &un)
				require.True(t, un.Sent)
			},
		},
		"handshake refused": {
			faults: fakegateway.Faults{Status: map[string]int{"channels": 500}},
			check: func(t *testing.T, err error) {
				var status *jupyter.StatusError
				require.ErrorAs(t, err, &status)
				require.Contains(t, status.Path, "/channels")
			},
		},
		"mute kernel": {
			faults: fakegateway.Faults{Mute: true},
			change: func(o *jupyter.Options) { o.DialTimeout = 500 * time.Millisecond }, // the connection has to be made in it
			check:  func(t *testing.T, err error) { require.ErrorContains(t, err, "does not answer") },
		},
		"handshake never ends": {
			faults: fakegateway.Faults{HoldHandshake: make(chan struct{})},
			change: func(o *jupyter.Options) { o.DialTimeout = 100 * time.Millisecond },
			check: func(t *testing.T, err error) {
				var un *jupyter.UnreachableError
				require.ErrorAs(t, err, &un)
				require.True(t, un.Timeout)
			},
		},
		"server says dead": {
			faults: fakegateway.Faults{HoldHandshake: make(chan struct{}), State: "dead"},
			check: func(t *testing.T, err error) {
				var lost *jupyter.LostError
				require.ErrorAs(t, err, &lost)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.change == nil {
				tc.change = func(*jupyter.Options) {}
			}
			s, c := fake(t, fakegateway.Options{Faults: tc.faults}, tc.change)
			k, err := c.Start(within(t), jupyter.StartRequest{})
			require.Error(t, err)
			require.Nil(t, k)
			require.NotContains(t, err.Error(), s.Token())
			tc.check(t, err)
			require.Empty(t, s.Live(), "nothing is left behind")
		})
	}
}

// The deletion after a failed start fails too: the error names the kernel.
func TestFailedCleanUpIsTold(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{Status: map[string]int{"channels": 500, "delete": 500}}})
	_, err := c.Start(within(t), jupyter.StartRequest{})
	require.ErrorContains(t, err, "may be left behind")
	require.ErrorContains(t, err, s.Live()[0].ID())
}

// A caller that leaves in any stage is answered with its cause, and the kernel
// is deleted.
func TestStartCancelled(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	for _, stage := range []string{jupyter.StageCreate, jupyter.StageConnect, jupyter.StageVerify} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			s, c := fake(t, fakegateway.Options{})
			ctx, cancel := context.WithCancelCause(within(t))
			k, err := c.Start(ctx, jupyter.StartRequest{OnStage: func(now string) {
				if now == stage {
					cancel(left)
				}
			}})
			require.ErrorIs(t, err, left)
			require.Nil(t, k)
			require.Empty(t, s.Live())
		})
	}
}

// A kernel that never answers holds a caller who left only for the grace.
func TestStartCancelledWhileHanging(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	for name, faults := range map[string]fakegateway.Faults{
		"create":    {Hang: map[string]bool{"create": true}},
		"handshake": {HoldHandshake: make(chan struct{})},
		"verify":    {Mute: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := fake(t, fakegateway.Options{Faults: faults}, func(o *jupyter.Options) { o.StartGrace = 50 * time.Millisecond })
			ctx, cancel := context.WithCancelCause(within(t))
			_, err := c.Start(ctx, jupyter.StartRequest{OnStage: func(string) { cancel(left) }})
			require.ErrorIs(t, err, left)
			require.Empty(t, s.Live())
		})
	}
}

// One handshake that fails does not fail the start.
func TestHandshakeIsRetried(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{Status: map[string]int{"channels": 500}, Times: 2}})
	k := startKernel(t, c)
	run(t, k, "out a")
	n := 0
	for _, r := range s.Requests() {
		if strings.HasSuffix(r, "/channels") {
			n++
		}
	}
	require.Equal(t, 3, n)
}

// Starts beyond MaxStarts wait their turn.
func TestStartsAreLimited(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{HoldHandshake: hold}},
		func(o *jupyter.Options) { o.MaxStarts = 2 })
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			k, err := c.Start(within(t), jupyter.StartRequest{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := k.Delete(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return len(s.Live()) == 2 }, patience, tick)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Start(ctx, jupyter.StartRequest{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, s.Live(), 2)
	close(hold)
	wg.Wait()
	require.Empty(t, s.Live())
}

// A kernel that dies at birth, as when another process took its port, is replaced.
func TestABirthIsTriedAgain(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{Faults: fakegateway.Faults{DieAtBirth: true}})
	births := 0
	k, err := c.Start(within(t), jupyter.StartRequest{Name: "python3", OnStage: func(stage string) {
		if stage == jupyter.StageCreate {
			births++
		}
		if births == 3 {
			s.Set(func(f *fakegateway.Faults) { f.DieAtBirth = false })
		}
	}})
	require.NoError(t, err)
	require.Equal(t, 3, births)
	require.Len(t, s.Live(), 1)
	require.Equal(t, k.ID(), s.Live()[0].ID())
	require.NoError(t, k.Delete(within(t)))

	s.Set(func(f *fakegateway.Faults) { f.DieAtBirth = true })
	_, err = c.Start(within(t), jupyter.StartRequest{Name: "python3"})
	require.ErrorContains(t, err, "died while it started")
	require.Len(t, s.Creates(), 6, "it is given up after three")
	require.Empty(t, s.Live())
}

// What a server says to a request for one kernel says nothing about the others.
func TestARefusedKernelHarmsNobody(t *testing.T) {
	t.Parallel()
	s, c := fake(t, fakegateway.Options{})
	k := startKernel(t, c)
	for _, status := range []int{400, 401, 403, 404, 409, 422, 429} {
		before := len(s.Requests())
		s.Set(func(f *fakegateway.Faults) { f.Status = map[string]int{"create": status} })
		_, err := c.Start(within(t), jupyter.StartRequest{Name: "python3"})
		var refused *jupyter.StatusError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, status, refused.Code)
		require.Equal(t, []string{"POST /api/kernels"}, s.Requests()[before:], "it is asked once, and nothing else is asked")
		require.NoError(t, k.Err())
		require.NoError(t, k.Ping(within(t)))
	}
	s.Set(func(f *fakegateway.Faults) { f.Status = nil })
	startKernel(t, c)
}
