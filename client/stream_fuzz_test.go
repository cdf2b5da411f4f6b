package client_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// fixed answers every request with the same bytes.
type fixed struct {
	kind string
	body []byte
}

// RoundTrip answers.
func (s fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(bytes.NewReader(s.body)), Request: r,
	}, nil
}

// FuzzEvents reads any bytes as the events of an execution and as changes: those
// of an execution come without a gap, and what makes no sense is an error.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {\"seq\":1,\"cell\":0,\"type\":\"stdout\",\"text\":\"x\"}\n\nid: 2\ndata: {\"seq\":2,\"cell\":-1,\"type\":\"final\",\"outcome\":\"ok\"}\n\n"))
	f.Add([]byte("data: {\"seq\":1,\"type\":\"tree\",\"at\":\"2026-01-01T00:00:00Z\",\"tree\":{}}\n\n"))
	f.Add([]byte(": here\n\ndata: {\ndata: }\n\n"))
	f.Add([]byte("data: {\"seq\":18446744073709551615,\"cell\":0,\"type\":\"stdout\"}\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := client.New(client.Options{URL: "http://127.0.0.1:1", Patience: -1, Silence: time.Minute, Transport: fixed{"text/event-stream", data}})
		require.NoError(t, err)
		defer c.Close()
		last := uint64(0)
		for e, err := range c.Events(t.Context(), "x", 0) {
			if err != nil {
				break
			}
			require.Equal(t, last+1, e.Pos().Seq)
			last = e.Pos().Seq
		}
		n := 0
		for _, err := range c.Changes(t.Context(), 0) {
			if n++; err != nil || n > 100 {
				break
			}
		}
	})
}
