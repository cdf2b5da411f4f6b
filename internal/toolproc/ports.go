package toolproc

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// ports gives out free ports, each once.
type ports struct {
	mu   sync.Mutex
	used map[int]bool // guarded by mu
}

// thePorts is shared by all tools of this process: a port that another one had
// may still be known to its clients.
var thePorts = ports{used: map[int]bool{}}

// portAttempts bounds the search for a port that was not given out before.
const portAttempts = 1000

// free returns a port of the loopback interface on which nothing listens now, and
// that was not returned before.
func (p *ports) free(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lc net.ListenConfig
	for range portAttempts {
		l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		addr, ok := l.Addr().(*net.TCPAddr)
		_ = l.Close()
		if !ok {
			return 0, fmt.Errorf("find a free port: %v is not a TCP address", l.Addr())
		}
		if !p.used[addr.Port] {
			p.used[addr.Port] = true
			return addr.Port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: the system offers none that was not used before; restart the host")
}
