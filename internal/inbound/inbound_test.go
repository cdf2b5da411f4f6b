package inbound_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/inbound"
)

const (
	get   = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	known = "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: yes\r\n\r\n"
	half  = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"
	halfK = "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: yes\r\nContent-Length: 5\r\n\r\n"
	chunk = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// TestAHeadHasItsTime, whether nothing comes or one byte after the other.
func TestAHeadHasItsTime(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]time.Duration{"nothing comes": time.Hour, "it trickles": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, 8, echo)
				began := time.Now()
				c := s.dial("")
				var sending sync.WaitGroup
				defer sending.Wait()
				sending.Go(func() {
					for at := range known {
						time.Sleep(pause)
						if _, err := c.Write([]byte(known[at : at+1])); err != nil {
							return
						}
					}
				})
				_, err := io.Copy(io.Discard, c.in) // the answer may say what was wrong
				require.NoError(t, err)
				require.InDelta(t, inbound.Head, time.Since(began), float64(time.Second))
			})
		})
	}
}

// TestAnAnswerDoesNotWaitForABody that never comes, and the connection is closed
// soon; one whose body has come is kept.
func TestAnAnswerDoesNotWaitForABody(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{"a length": half, "chunks": chunk, "a token": halfK, "a large one": strings.Replace(half, " 5", " 99999999", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, 8, deaf)
				began := time.Now()
				c := s.dial(request)
				resp, _ := c.answer()
				require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
				require.True(t, resp.Close)
				require.Zero(t, time.Since(began))
				require.Equal(t, inbound.Linger, c.closed())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 8, echo)
		c := s.dial(half + "12345")
		for range 3 {
			resp, text := c.answer()
			require.False(t, resp.Close)
			require.Equal(t, "12345", text)
			c.say(half + "12345")
		}
		_, _ = c.answer()
		require.Equal(t, 2*time.Minute, c.closed(), "an idle connection")
	})
}

// TestABodyHasItsTime: a slow one is read, a slower one is not, and the handler is
// told.
func TestABodyHasItsTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pause time.Duration
		want  int
	}{"slow": {11 * time.Second, http.StatusOK}, "too slow": {13 * time.Second, http.StatusRequestTimeout}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, 8, echo)
				began := time.Now()
				c := s.dial(halfK)
				var sending sync.WaitGroup
				defer sending.Wait()
				sending.Go(func() {
					for range 5 {
						time.Sleep(tc.pause)
						_, _ = c.Write([]byte("x"))
					}
				})
				resp, text := c.answer()
				require.Equal(t, tc.want, resp.StatusCode)
				require.Equal(t, tc.want != http.StatusOK, resp.Close)
				if tc.want == http.StatusOK {
					require.Equal(t, "xxxxx", text)
					require.Equal(t, 5*tc.pause, time.Since(began))
				} else {
					require.Equal(t, time.Minute, time.Since(began))
				}
			})
		})
	}
}

// TestAnAnswerHasAllTheTime: streams and long polls are not cut, and see that their
// client leaves.
func TestAnAnswerHasAllTheTime(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{"no body": known, "a body": halfK + "12345", "no token": get} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				left := make(chan struct{})
				s := serve(t, 8, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.ReadAll(r.Body)
					control := http.NewResponseController(w)
					for range 24 {
						select {
						case <-time.After(time.Hour):
						case <-r.Context().Done():
							t.Error("it was cut")
						}
						_, _ = io.WriteString(w, "tick")
						_ = control.Flush()
					}
					<-r.Context().Done()
					close(left)
				})
				began := time.Now()
				c := s.dial(request)
				resp, err := http.ReadResponse(c.in, nil)
				require.NoError(t, err)
				text := make([]byte, 24*4)
				_, err = io.ReadFull(resp.Body, text)
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("tick", 24), string(text))
				require.Equal(t, 24*time.Hour, time.Since(began))
				require.NoError(t, c.Close())
				<-left
			})
		})
	}
}

// TestStrangersAreBounded: the oldest goes, and whoever is known stays.
func TestStrangersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serve(t, 4, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				<-release
			}
			deaf(w, r)
		})
		owner := s.dial(known)
		var strangers []*client
		for i := range 12 {
			strangers = append(strangers, s.dial([]string{"", "GET", "GET / HTTP/1.1\r\n"}[i%3]))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(inbound.Patience)
		for i, c := range strangers {
			require.Equal(t, i >= 8, c.open(), "stranger %d", i)
		}
		began := time.Now()
		again := s.dial(known)
		close(release)
		for _, c := range []*client{owner, again} {
			resp, _ := c.answer()
			require.False(t, resp.Close)
		}
		require.Less(t, time.Since(began), inbound.Patience)
	})
}

// TestACrowdIsLetIn: clients that come at once, and say who they are, do not count as
// them closed for another.
func TestACrowdIsLetIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 4, deaf)
		var crowd sync.WaitGroup
		for range 100 {
			crowd.Go(func() {
				here, there := net.Pipe()
				defer func() { _ = here.Close() }()
				s.pipes.conns <- there
				time.Sleep(inbound.Patience / 2) // before it finds words
				_, err := io.WriteString(here, known)
				if err == nil {
					_, err = http.ReadResponse(bufio.NewReader(here), nil)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		crowd.Wait()
	})
}

// TestKnownOnesAreBounded while the server waits for them, and only then.
func TestKnownOnesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serve(t, 4, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-release
			}
			echo(w, r)
		})
		var working, waiting []*client
		for range 12 {
			working = append(working, s.dial(known))
		}
		for range 12 {
			waiting = append(waiting, s.dial(halfK))
			synctest.Wait()
		}
		for i, c := range waiting {
			require.Equal(t, i >= 8, c.open(), "client %d", i)
		}
		close(release)
		for _, c := range working {
			resp, _ := c.answer()
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		synctest.Wait()
		strangers, idle := s.Waiting()
		require.Zero(t, strangers)
		require.Equal(t, 4, idle)
	})
}

// TestTheEndWaitsForNobody whom the server waits for, only for those it is serving.
func TestTheEndWaitsForNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan error, 1)
		s := serve(t, 8, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_, err := io.ReadAll(r.Body)
				told <- err
				return
			}
			time.Sleep(time.Hour)
			deaf(w, r)
		})
		idle := s.dial(strings.Replace(halfK, " 5", " 0", 1))
		_, _ = idle.answer()
		require.NoError(t, <-told)
		for _, text := range []string{"", "POST / HTTP/1.1\r\nHost", half[:len(half)-2]} {
			s.dial(text)
		}
		s.dial(half) // a stranger, in the middle
		reading, working := s.dial(halfK+"12"), s.dial(known)
		synctest.Wait()
		began := time.Now()
		s.End()
		for range 2 {
			if err := <-told; !errors.Is(err, inbound.ErrEnding) {
				require.ErrorIs(t, err, net.ErrClosed)
			}
		}
		over := make(chan error, 1)
		go func() { over <- s.http.Shutdown(context.Background()) }()
		resp, _ := reading.answer()
		require.True(t, resp.Close)
		require.Zero(t, reading.closed())
		require.Less(t, time.Since(began), time.Second)
		resp, _ = working.answer()
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		require.NoError(t, <-over)
		require.Less(t, time.Since(began), time.Hour+time.Second)
	})
}

// TestNobodyGetsInAfterTheEnd, and a body that begins then is not waited for.
func TestNobodyGetsInAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 8, echo)
		keeps := s.dial(known)
		_, _ = keeps.answer()
		synctest.Wait() // it is idle
		s.End()
		here, there := net.Pipe()
		s.pipes.conns <- there
		require.Zero(t, (&client{t, here, bufio.NewReader(here)}).closed())
		require.Zero(t, keeps.closed())
	})
}

// TestWithoutDescriptors the oldest stranger makes room, then a known client that is
// idle; what else goes wrong is the server's.
func TestWithoutDescriptors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 8, echo)
		idle := s.dial(known)
		_, _ = idle.answer()
		first, second := s.dial(""), s.dial("")
		synctest.Wait()
		s.pipes.full <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		require.Zero(t, first.closed())
		require.True(t, second.open())
		s.pipes.full <- &net.OpError{Op: "accept", Err: syscall.ENFILE}
		require.True(t, idle.open())
		s.pipes.full <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		require.False(t, idle.open())
		c := s.dial(known)
		_, _ = c.answer()
	})
}

func TestBound(t *testing.T) {
	t.Parallel()
	for files, want := range map[int]int{0: 8, 40: 10, 256: 64, 1024: 256, 20000: 512, 1 << 30: 512} {
		require.Equal(t, want, inbound.Bound(files), files)
	}
}
