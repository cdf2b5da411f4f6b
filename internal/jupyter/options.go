package jupyter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/loopback"
	"github.com/coppice-run/coppice/internal/process"
)

// Options configures a [Client]. Only URL is required.
type Options struct {
	// URL is where the server is: http or https, host, port, and the base path
	// if it has one. Slashes at the end are ignored. Credentials, a query or a
	// fragment are refused: the token has its own field.
	URL string
	// Token is sent as "Authorization: token …"; "" sends no header.
	Token string
	// Client makes the REST requests. Nil means one of our own, without
	// cookies, proxies or redirects. Dialling WebSockets takes over the TLS
	// settings and the proxy of an *http.Transport, and nothing else.
	Client *http.Client
	// Trace, if not nil, hears of every request and every message: names,
	// ids and sizes, never contents, never the token. It is called from many
	// goroutines, must not block, and must not call back.
	Trace func(TraceRecord)
	// MaxMessage is the size in bytes of the largest message that is read; a
	// larger one ends the connection. 0 means 256 MiB.
	MaxMessage int64
	// SpoolMemory is how many bytes of output of one kernel wait in memory; the
	// rest waits in files. 0 means 8 MiB.
	SpoolMemory int64
	// SpoolDir is where these files are; "" means [os.TempDir].
	SpoolDir string
	// Server is the process of the server, when it is one of this machine. What it and
	// its kernels wait for a processor is not counted by RequestTimeout, DialTimeout,
	// Silence and Reconnect, up to five times as long. The zero value: that is not known,
	// and only what this process stands still is not counted.
	Server process.Identity
	// Dial connects to a server that no address leads to, for its network is that of a kernel of
	// its own; Server is then what that runs in. nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RequestTimeout bounds a REST request whose context has no nearer
	// deadline. 0 means 10 s, which a DELETE of a stubborn kernel (5 s) fits in.
	RequestTimeout time.Duration
	// DialTimeout bounds the WebSocket handshake, which a server delays until
	// the kernel has answered once. 0 means 75 s: a server gives up after 60. It
	// bounds the request to create a kernel too, if it is longer than
	// RequestTimeout: an Enterprise Gateway answers when the kernel is up.
	DialTimeout time.Duration
	// MaxStarts is how many Start calls run at once; the others wait. Starting
	// is all CPU, and a crowd of starting kernels makes each of them time out.
	// 0 means twice the number of CPUs.
	MaxStarts int
	// WriteTimeout bounds the write of one message to a server that does not read
	// it: then the connection counts as broken. 0 means 30 s.
	WriteTimeout time.Duration
	// PingEvery is the pause between WebSocket pings. 0 means 15 s.
	PingEvery time.Duration
	// Silence is how long a connection may carry no byte at all before it
	// counts as dead; pings draw an answer from a live one. 0 means three
	// times PingEvery.
	Silence time.Duration
	// Reconnect is how long a connection that broke is dialled again before the
	// kernel counts as lost. 0 means 60 s.
	Reconnect time.Duration
	// RefusedFor is how long a server on this machine may refuse connections:
	// nothing listens there, so its process is gone. 0 means 2 s. Who knows the
	// process need not wait for that; see [Client.ServerEnded].
	RefusedFor time.Duration
	// RestartSettle is how long the deletion of a kernel waits that the server
	// has just restarted. 0 means 1 s.
	RestartSettle time.Duration
	// Settle is how long an execution waits for the missing one of reply and
	// idle before the kernel is probed. 0 means 2 s.
	Settle time.Duration
	// StartGrace is how long a Start goes on after its caller left, so that it
	// can delete what it began. 0 means 3 s.
	StartGrace time.Duration
	// VerifyEvery is the pause between probes of a kernel that starts, and of
	// the server about it. 0 means 300 ms.
	VerifyEvery time.Duration
}

// withDefaults returns o with every zero replaced by its default.
func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = 256 << 20
	}
	if o.SpoolMemory <= 0 {
		o.SpoolMemory = 8 << 20
	}
	if o.MaxStarts <= 0 {
		o.MaxStarts = 2 * runtime.NumCPU()
	}
	def(&o.RequestTimeout, 10*time.Second)
	def(&o.DialTimeout, 75*time.Second)
	def(&o.WriteTimeout, 30*time.Second)
	def(&o.PingEvery, 15*time.Second)
	def(&o.Silence, 3*o.PingEvery)
	def(&o.Reconnect, time.Minute)
	def(&o.RefusedFor, 2*time.Second)
	def(&o.RestartSettle, time.Second)
	def(&o.Settle, 2*time.Second)
	def(&o.StartGrace, 3*time.Second)
	def(&o.VerifyEvery, 300*time.Millisecond)
	return o
}

// dialer is what connects to the server.
func (o Options) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.Dial != nil {
		return o.Dial
	}
	return (&net.Dialer{Timeout: 5 * time.Second}).DialContext
}

// Client talks to one Jupyter server: a Kernel Gateway, an Enterprise Gateway
// or a Jupyter Server. Any goroutine may call its methods.
type Client struct {
	opts Options
	// rest is the base URL without a slash at its end, ws the same with the
	// scheme of WebSockets.
	rest, ws string
	loopback bool // the server is on this machine
	http     *http.Client
	// own is the transport to close, nil when the caller gave the client.
	own *http.Transport
	// starts holds one token for every Start that runs.
	starts chan struct{}
	// claimed holds the ids of the kernels in use: no two sessions share one.
	claimed sync.Map
	// ended is closed when the server is known to be gone.
	ended     chan struct{}
	endedOnce sync.Once
}

// NewClient returns a client; it connects to nothing yet.
func NewClient(o Options) (*Client, error) {
	o = o.withDefaults()
	u, err := url.Parse(strings.TrimSpace(o.URL))
	if err != nil {
		// The text of a parse error quotes the URL, credentials included.
		return nil, errors.New("jupyter server: the URL is malformed")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("jupyter server: the URL's scheme is %q, not http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("jupyter server: the URL has no host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("jupyter server: the URL must not carry credentials, a query or a fragment; put the token into COPPICE_PYTHON_GATEWAY_TOKEN")
	}
	base := u.Host + strings.TrimRight(u.EscapedPath(), "/")
	c := &Client{
		opts:     o,
		rest:     u.Scheme + "://" + base,
		ws:       strings.Replace(u.Scheme, "http", "ws", 1) + "://" + base,
		loopback: loopback.URL(u),
		http:     o.Client,
		starts:   make(chan struct{}, o.MaxStarts),
		ended:    make(chan struct{}),
	}
	if c.http == nil {
		c.own = &http.Transport{
			Proxy:                 nil,
			DialContext:           o.dialer(),
			TLSHandshakeTimeout:   5 * time.Second,
			MaxIdleConnsPerHost:   8,
			IdleConnTimeout:       30 * time.Second,
			ResponseHeaderTimeout: 0, // contexts bound requests

			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
		}
		c.http = &http.Client{
			Transport: c.own,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		}
	}
	return c, nil
}

// Close drops idle connections. Kernels are not touched: they have Delete.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// ServerEnded says that the server's process is gone, and its kernels with it.
// A kernel whose connection has ended, or ends from now on, is lost at once: what
// its connection still holds is read before. It may be called again.
func (c *Client) ServerEnded() { c.endedOnce.Do(func() { close(c.ended) }) }

// URL returns the address of the server, fit for messages to people.
func (c *Client) URL() string { return c.rest }

// header returns the request headers for REST and WebSocket alike. The key of
// a query token would land in access logs, and "Bearer" is refused by gateways.
func (c *Client) header() http.Header {
	h := http.Header{}
	if c.opts.Token != "" {
		h.Set("Authorization", "token "+c.opts.Token)
	}
	return h
}
