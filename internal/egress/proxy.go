package egress

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coppice-run/coppice/internal/inbound"
)

const (
	// dialTime bounds the begin of a connection.
	dialTime = 30 * time.Second
	// keptRefusals is how many hosts are remembered that were refused: the newest.
	keptRefusals = 64
	// user is the name beside the token.
	user = "coppice"
)

// Refusal is a host that was asked for, and may not be reached.
type Refusal struct {
	Host  string    // with its port
	Why   string    // it may not, when it was asked for last
	Times int       // it was asked for
	Last  time.Time // when
}

// Proxy is a running one.
type Proxy struct {
	hosts Hosts
	token string
	port  int
	http  *http.Server

	served  chan struct{} // closed when the server has ended
	life    context.Context
	end     context.CancelFunc
	tunnels sync.WaitGroup
	forward *httputil.ReverseProxy
	dialer  net.Dialer

	mu      sync.Mutex
	refused []Refusal // the newest last; guarded by mu
	closed  bool      // guarded by mu: no tunnel begins any more
}

// Start starts a proxy to hosts.
func Start(ctx context.Context, hosts Hosts) (*Proxy, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the way to other hosts: %w", err)
	}
	at, _ := netip.ParseAddrPort(listener.Addr().String()) // of TCP
	p := &Proxy{hosts: hosts, token: rand.Text(), port: int(at.Port()), served: make(chan struct{}), dialer: net.Dialer{Timeout: dialTime}}
	p.life, p.end = context.WithCancel(context.Background())
	quiet := log.New(io.Discard, "", 0) // who asked is told, and the host by Refused
	p.forward = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport: &http.Transport{DialContext: p.dialNamed, DisableKeepAlives: true},
		ErrorLog:  quiet,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			inbound.Unsent(w, r)
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.http = &http.Server{Handler: p, ErrorLog: quiet, MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return p.life }}
	connections := inbound.Guard(p.http, inbound.Limits{})
	go func() { // ends with Close
		defer close(p.served)
		_ = p.http.Serve(connections.Listener(listener)) // it always says that it was closed
	}()
	return p, nil
}

// Port is the one that it listens on.
func (p *Proxy) Port() int { return p.port }

// Env are the variables by which programs find it. They have its token.
func (p *Proxy) Env() []string {
	at := (&url.URL{Scheme: "http", User: url.UserPassword(user, p.token), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))}).String()
	env := make([]string, 0, len(Names))
	for _, name := range Names {
		if strings.EqualFold(name, "NO_PROXY") { // there is no other way
			env = append(env, name+"=")
			continue
		}
		env = append(env, name+"="+at)
	}
	return env
}

// Names are those of the variables of Env.
var Names = []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"}

// Refused returns what was refused, the newest last.
func (p *Proxy) Refused() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// Close ends it, and what goes on.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	err := p.http.Close()
	<-p.served
	p.tunnels.Wait()
	if err != nil {
		return fmt.Errorf("close the way to other hosts: %w", err)
	}
	return nil
}

// ServeHTTP answers one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, password, ok := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	if !ok || name != user || subtle.ConstantTimeCompare([]byte(password), []byte(p.token)) != 1 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="coppice"`)
		http.Error(w, "this way to other hosts is open to who has its token", http.StatusProxyAuthRequired)
		return
	}
	target := r.Host
	switch {
	case r.Method == http.MethodConnect:
	case r.URL.Scheme == "http" && r.URL.Host != "":
		if target = r.URL.Host; r.URL.Port() == "" {
			target = net.JoinHostPort(r.URL.Hostname(), strconv.Itoa(portHTTP))
		}
	default:
		http.Error(w, "this is a proxy: ask it for http:// and https:// addresses", http.StatusBadRequest)
		return
	}
	host, port, err := split(target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if allowed, _ := p.hosts.allow(host, port); !allowed {
		p.refuse(w, target)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, target)
		return
	}
	r.Header.Del("Proxy-Authorization")
	r.Header.Del("Proxy-Connection")
	p.forward.ServeHTTP(inbound.Relayed(w, r))
}

// split reads a host with its port.
func split(target string) (string, int, error) {
	host, text, err := net.SplitHostPort(target)
	if err != nil {
		return "", 0, fmt.Errorf("%.100q is no host with a port", target)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > mostPort {
		return "", 0, fmt.Errorf("%.100q has no port from 1 to %d", target, mostPort)
	}
	return host, port, nil
}

// refuse says what may be reached, in the status too: most programs show that alone.
func (p *Proxy) refuse(w http.ResponseWriter, target string) {
	p.note(target, "it is not among the hosts that may be reached")
	text := fmt.Sprintf("%.200s may not be reached from here, but %.800s", strings.Map(printable, target), p.hosts)
	if c, ok := w.(http.Hijacker); ok {
		if conn, rw, err := c.Hijack(); err == nil {
			defer func() { _ = conn.Close() }()
			_, _ = fmt.Fprintf(rw, "HTTP/1.1 403 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", text, len(text)+1, text)
			_ = rw.Flush() // who asked may be gone
			return
		}
	}
	http.Error(w, text, http.StatusForbidden)
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// note remembers what was refused.
func (p *Proxy) note(target, why string) {
	const most = 300
	target = target[:min(len(target), most)]
	p.mu.Lock()
	defer p.mu.Unlock()
	one := Refusal{Host: target}
	if at := slices.IndexFunc(p.refused, func(r Refusal) bool { return r.Host == target }); at >= 0 {
		one = p.refused[at]
		p.refused = slices.Delete(p.refused, at, at+1)
	}
	one.Times++
	one.Why, one.Last = why, time.Now()
	if p.refused = append(p.refused, one); len(p.refused) > keptRefusals {
		p.refused = p.refused[1:]
	}
}

// errOwn is matched when a name stands for an address that no name may stand for.
var errOwn = errors.New("it stands for an address of this machine or of its link, which is reached when the address is listed itself")

// dialNamed makes the connection to a host that is listed.
func (p *Proxy) dialNamed(ctx context.Context, _, target string) (net.Conn, error) {
	host, port, err := split(target)
	if err != nil {
		return nil, err
	}
	allowed, address := p.hosts.allow(host, port)
	if !allowed {
		return nil, fmt.Errorf("%.200s may not be reached", target)
	}
	d := p.dialer
	if !address { // of what a name stands for, as it is connected to
		d.Control = func(_, at string, _ syscall.RawConn) error {
			if a, err := netip.ParseAddrPort(at); err == nil && own(a.Addr()) {
				return errOwn
			}
			return nil
		}
	}
	conn, err := d.DialContext(ctx, "tcp", target)
	if errors.Is(err, errOwn) {
		p.note(target, errOwn.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("reach %.200s: %w", target, err)
	}
	return conn, nil
}

// own reports whether an address is of this machine or its link.
func own(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast()
}

// tunnel connects who asks with a host, until one of them ends it.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	there, err := p.dialNamed(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	c, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "this connection cannot become a tunnel", http.StatusInternalServerError)
		return
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.tunnels.Add(1)
	p.mu.Unlock()
	defer p.tunnels.Done()
	here, rw, err := c.Hijack()
	if err != nil {
		return
	}
	defer func() { _ = here.Close() }()
	if _, err := rw.WriteString("HTTP/1.1 200 Connection established\r\n\r\n"); err != nil || rw.Flush() != nil {
		return
	}
	stop := context.AfterFunc(p.life, func() { // both copies end
		_ = here.Close()
		_ = there.Close()
	})
	defer stop()
	var back sync.WaitGroup
	back.Go(func() { // ends with either side; joined below
		_, _ = io.Copy(here, there)
		half(here)
	})
	_, _ = io.Copy(there, rw) // what was read ahead, and then the rest
	half(there)
	back.Wait()
}

// half says that no more is sent.
func half(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite() // the other side has ended otherwise
		return
	}
	_ = c.Close()
}
