package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/coppice-run/coppice/internal/sse"
)

// errSilent ends a stream whose server says nothing any more.
var errSilent = errors.New("the server has been silent for too long")

// stream makes one request, and calls take for each of the server-sent events that
// answer it, until take says that it is enough (end), or the connection ends. It calls
// alive whenever something comes.
func (c *Client) stream(ctx context.Context, method, path string, body []byte, after uint64, alive func(), take func(sse.Event) (more bool, err error)) (end bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit, why := c.o.Silence, errSilent
	if method == http.MethodGet && c.answering <= limit {
		limit, why = c.answering, errNoAnswer // its head is there at once
	}
	head := newSilence(limit, func() { cancel(why) })
	defer head.end()
	req, err := c.request(ctx, method, path, nil, body)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	}
	resp, err := c.send(req)
	if err != nil {
		return false, because(ctx, explained(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // nothing follows, and nothing will
		return true, nil
	}
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the status says enough
		return false, problem(resp.StatusCode, data)
	}
	head.end()
	quiet := newSilence(c.o.Silence, func() { cancel(errSilent) })
	defer quiet.end()
	events := sse.NewReader(lively{resp.Body, func() {
		quiet.heard()
		alive()
	}}, maxAnswer)
	for {
		e, err := events.Next()
		if err != nil {
			return false, because(ctx, fmt.Errorf("the connection broke: %w", err))
		}
		if more, err := take(e); !more || err != nil {
			return err == nil, err
		}
	}
}

// because puts why ctx has ended, if it has, before what came of it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// lively calls alive whenever something comes, a comment too.
type lively struct {
	from  io.Reader
	alive func()
}

// Read reads.
func (l lively) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if n > 0 {
		l.alive()
	}
	return n, err
}

func parseChange(data []byte) (Change, error) {
	var change Change
	if err := json.Unmarshal(data, &change); err != nil {
		return change, fmt.Errorf("read a change: %w", err)
	}
	return change, nil
}
