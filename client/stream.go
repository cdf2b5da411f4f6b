package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/internal/sse"
)

// errSilent ends a stream whose server says nothing any more.
var errSilent = errors.New("the server has been silent for too long")

// stream reads one connection of server-sent events, and calls take for the data
// of each, until take says that it is enough (end), or the connection ends.
func (c *Client) stream(ctx context.Context, path string, after uint64, take func(data []byte) (more bool, err error)) (end bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.o.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	req, err := c.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if after > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, unwrapURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the status says enough
		return false, problem(resp.StatusCode, data)
	}
	events := sse.NewReader(lively{resp.Body, func() { silence.Reset(c.o.Silence) }}, maxAnswer)
	for {
		e, err := events.Next()
		if err != nil {
			return false, errors.Join(fmt.Errorf("the connection broke: %w", err), context.Cause(ctx))
		}
		if more, err := take([]byte(e.Data)); !more || err != nil {
			return err == nil, err
		}
	}
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
