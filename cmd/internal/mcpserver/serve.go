package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where ListenAndServe serves the protocol.
const Path = "/mcp"

// readHeaderTimeout bounds how long a client may take for the head of a request,
// closeTimeout how long calls have to end at the end.
const (
	readHeaderTimeout = 10 * time.Second
	closeTimeout      = 5 * time.Second
)

// Listen opens a loopback address. An address without a port gets one.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q is not HOST:PORT; 127.0.0.1:0 takes a free port: %w", addr, err)
	}
	if !loopback(host) {
		return nil, fmt.Errorf("the address %q is not a loopback address; use 127.0.0.1:PORT, and a proxy of your own for other machines", addr)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// ServeStdio serves m to the one client that in and out belong to, until in has
// ended and every request was answered, or ctx ends. It closes in, if that can be
// closed. An out with a method ReaderGone() bool is asked by it whether the client
// has died; what runs for it is ended then.
func ServeStdio(ctx context.Context, m *Server, in io.Reader, out io.Writer) error {
	closer, ok := in.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(in)
	}
	gone := func() bool { return false }
	if r, ok := out.(interface{ ReaderGone() bool }); ok {
		gone = r.ReaderGone
	}
	open := &pending{ctx: ctx, gone: gone, idle: make(chan struct{}, 1)}
	err := m.Run(ctx, &mcp.IOTransport{Reader: &requests{closer, open, lineScanner{}}, Writer: &answers{out, open, lineScanner{}}})
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("serve MCP: %w", err)
}

// Serve serves m on l until ctx ends; then running calls have 5 s to end. It
// closes l.
func Serve(ctx context.Context, l net.Listener, m *Server, token string, o Options) error {
	mux := http.NewServeMux()
	mux.Handle(Path, Handler(m, token, o))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if server.Shutdown(end) != nil { // somebody keeps a stream open
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve MCP on %s: %w", l.Addr(), err)
}
