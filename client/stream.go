package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
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
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	var data []byte
	for {
		line, err := readLine(in)
		if err != nil {
			return false, errors.Join(err, context.Cause(ctx))
		}
		silence.Reset(c.o.Silence)
		switch {
		case len(line) == 0 && len(data) > 0:
			more, err := take(data)
			if !more || err != nil {
				return err == nil, err
			}
			data = nil
		case bytes.HasPrefix(line, []byte("data: ")):
			data = append(data, line[len("data: "):]...)
		}
	}
}

// readLine reads a line of any length that an answer may have.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("the connection broke: %w", err)
		case len(line) > maxAnswer:
			return nil, fmt.Errorf("the connection broke: a line of more than %d bytes", maxAnswer)
		}
	}
}

func parseChange(data []byte) (Change, error) {
	var change Change
	if err := json.Unmarshal(data, &change); err != nil {
		return change, fmt.Errorf("read a change: %w", err)
	}
	return change, nil
}
