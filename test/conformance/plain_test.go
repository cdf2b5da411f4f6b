//go:build linux

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
)

// plainHost is a host with a backend and nothing else of its own, which tests share: a
// gateway costs seconds of processor time.
type plainHost struct {
	once       sync.Once
	host       *coppice.Host
	home, mark string
	err        error
}

var plainHosts = map[string]*plainHost{backends.Gateway: {}, backends.Runner: {}}

// plain returns it. Whoever uses it has sessions in folders of its own.
func plain(t *testing.T, backend string) *coppice.Host {
	t.Helper()
	p := plainHosts[backend]
	p.once.Do(func() {
		p.mark = messages.NewID()
		if p.home, p.err = os.MkdirTemp("", "coppice-conformance-"); p.err != nil {
			return
		}
		o := settle(t, backend, p.mark, coppice.Options{MaxSessions: 12})
		o.Home = p.home
		p.host, p.err = coppice.Start(context.Background(), o)
	})
	require.NoError(t, p.err)
	return p.host
}

// endPlain ends those hosts, and returns what is left of them.
func endPlain() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for backend, p := range plainHosts {
		if p.host == nil {
			continue
		}
		if report := p.host.Shutdown(ctx); !report.Clean() {
			errs = append(errs, fmt.Errorf("%s: leftovers: %+v", backend, report.Leftovers))
		}
		if left := proc.WithEnv(marker, p.mark); len(left) > 0 {
			errs = append(errs, fmt.Errorf("%s: processes were left behind: %v", backend, left))
		}
		errs = append(errs, os.RemoveAll(p.home))
	}
	return errors.Join(errs...)
}
