package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio serves m to the one client that in and out belong to, until in has
// ended and every request was answered, or ctx ends. It closes in, if that can be
// closed. An out with a method ReaderGone() bool is asked by it whether the client
// has died; what runs for it is ended then. A line of in that cannot be read, or is
// longer than 16 MiB, is answered with an error, and the next one is read.
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
	to := &answers{out: out, open: open}
	from := &requests{in: closer, open: open, refuse: to.refuse, most: maxFrame}
	err := m.Run(ctx, &mcp.IOTransport{Reader: from, Writer: to, MaxLineLength: -1}) // from bounds it
	if err == nil || ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("serve MCP: %w", err)
}
