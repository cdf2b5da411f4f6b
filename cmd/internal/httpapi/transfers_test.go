package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
)

// How long something is waited for that is to come, and how often it is looked at.
const (
	waitTime = time.Minute
	tick     = 5 * time.Millisecond
)

// breaking gives some bytes, and then leaves.
type breaking struct {
	n      int
	cancel context.CancelFunc
}

// Read gives bytes.
func (b *breaking) Read(p []byte) (int, error) {
	if b.n += len(p); b.n > 1<<20 {
		b.cancel()
		return 0, context.Canceled
	}
	return len(p), nil
}

// pattern gives so many bytes, which differ wherever two pieces of one length could be
// taken for each other.
type pattern struct{ at, size int64 }

// block is what is repeated; its length is a prime.
var block = func() []byte {
	b := make([]byte, 65521)
	for i := range b {
		b[i] = byte(i * 2654435761 >> 13)
	}
	return b
}()

// Read gives the next of them.
func (p *pattern) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	from := block[p.at%int64(len(block)):]
	n := copy(b, from[:min(int64(len(from)), p.size-p.at)])
	p.at += int64(n)
	return n, nil
}

// peak is the most memory that is seen while what passes through is counted.
type peak struct {
	io.Writer
	n    int
	most uint64
}

// Write counts.
func (p *peak) Write(b []byte) (int, error) {
	if p.n++; p.n%256 == 0 {
		p.most = max(p.most, memory())
	}
	return p.Writer.Write(b)
}

// memory is how much the process has from the system.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

// direct is a client whose requests nothing looks at.
func (s *server) direct() *client.Client {
	s.t.Helper()
	c, err := client.New(client.Options{URL: s.url, Token: token})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// TestALargeFileOverHTTP streams a file both ways: server and client together take no
// memory for it. In the full run it has 2 GiB.
func TestALargeFileOverHTTP(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		size = 2 << 30
	}
	s := serve(t, coppice.Options{}, httpapi.Options{})
	c, ctx := s.direct(), t.Context()
	_, err := c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w", Quota: size})
	require.NoError(t, err)
	before := memory()
	in := &peak{Writer: crc32.NewIEEE()}
	f, err := c.WriteFile(ctx, "w", "large", io.TeeReader(&pattern{size: size}, in), client.WriteFile{Size: size})
	require.NoError(t, err)
	require.Equal(t, size, f.Size)
	r, err := c.OpenFile(ctx, "w", "large", client.ReadFile{})
	require.NoError(t, err)
	require.Equal(t, size, r.Size())
	out := &peak{Writer: crc32.NewIEEE()}
	n, err := io.CopyBuffer(out, struct{ io.Reader }{r}, make([]byte, 64<<10))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, size, n)
	require.Equal(t, fmt.Sprint(in.Writer), fmt.Sprint(out.Writer))
	require.NotZero(t, out.most)
	require.Less(t, int64(max(in.most, out.most))-int64(before), int64(32<<20))

	// One byte more is refused before it is sent.
	_, err = c.WriteFile(ctx, "w", "more", &pattern{size: size + 1}, client.WriteFile{Size: size + 1})
	require.Equal(t, http.StatusRequestEntityTooLarge, statusOf(t, err))
}

// TestManyFilesOverHTTP: three hundred of them, up in one form and one by one, and down; ten
// thousand in the full run.
func TestManyFilesOverHTTP(t *testing.T) {
	many := 300
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		many = 10000
	}
	s := serve(t, coppice.Options{}, httpapi.Options{})
	c, ctx := s.direct(), t.Context()
	_, err := c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	before := memory()
	half := many / 2
	made, err := c.WriteFiles(ctx, "w", "in", func(yield func(client.Content) bool) {
		for i := range half {
			one := client.Content{Path: fmt.Sprintf("d%d/f%d", i%100, i), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(fmt.Sprint(i))), nil }}
			if !yield(one) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.Len(t, made, half)
	for i := half; i < many; i++ {
		_, err := c.WriteFile(ctx, "w", fmt.Sprintf("in/d%d/f%d", i%100, i), strings.NewReader(fmt.Sprint(i)), client.WriteFile{Size: int64(len(fmt.Sprint(i)))})
		require.NoError(t, err)
	}
	list, err := c.ListFiles(ctx, "w", client.ListFiles{Path: "in", Depth: -1})
	require.NoError(t, err)
	require.Len(t, list.Files, many+100)
	for i := range many {
		r, err := c.OpenFile(ctx, "w", fmt.Sprintf("in/d%d/f%d", i%100, i), client.ReadFile{})
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, fmt.Sprint(i), string(data))
	}
	require.Less(t, int64(memory())-int64(before), int64(32<<20))
}

// cutting lets only so many bytes of each answer through, of every request but the last
// ones.
type cutting struct {
	http.RoundTripper
	after, times int
}

// RoundTrip makes the request.
func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil && c.times > 0 {
		c.times--
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(resp.Body, int64(c.after)), broken{}), resp.Body}
	}
	return resp, err
}

type broken struct{}

// Read fails as a connection does.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestReadingGoesOn where it broke, and stops where the file has become another one.
func TestReadingGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	ctx := t.Context()
	_, err := s.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	want := bytes.Repeat([]byte("0123456789"), 1000)
	_, err = s.WriteFile(ctx, "w", "f", bytes.NewReader(want), client.WriteFile{})
	require.NoError(t, err)
	cut := &cutting{RoundTripper: s.http.Transport, after: 777, times: 5}
	c, err := client.New(client.Options{URL: s.url, Token: token, Transport: cut})
	require.NoError(t, err)
	r, err := c.OpenFile(ctx, "w", "f", client.ReadFile{From: 5, Bytes: 9000})
	require.NoError(t, err)
	require.Equal(t, "0644", r.Mode())
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, string(want[5:9005]), string(got))
	require.Zero(t, cut.times)

	cut.times = 1
	r, err = c.OpenFile(ctx, "w", "f", client.ReadFile{})
	require.NoError(t, err)
	_, err = s.WriteFile(ctx, "w", "f", strings.NewReader("another"), client.WriteFile{IfMatch: r.ETag()})
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorContains(t, err, "changed")
	require.NoError(t, r.Close())

	for path, code := range map[string]string{"none": "not_found", "../f": "outside"} {
		_, err = c.OpenFile(ctx, "w", path, client.ReadFile{})
		var told *client.Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, code, told.Code)
	}
	r, err = c.OpenFile(ctx, "w", "f", client.ReadFile{From: 99})
	require.NoError(t, err)
	got, err = io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, got, "there is nothing behind the end")
}

// TestOneOfManyWins: of those who replace the same version, one does.
func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	s := serve(t, coppice.Options{}, httpapi.Options{})
	ctx, c := t.Context(), s.direct()
	_, err := c.CreateWorkspace(ctx, client.NewWorkspace{Name: "w"})
	require.NoError(t, err)
	for round := range 10 {
		f, err := c.WriteFile(ctx, "w", "f", strings.NewReader(fmt.Sprintf("round %02d", round)), client.WriteFile{})
		require.NoError(t, err)
		won := make(chan error, 8)
		for i := range cap(won) {
			go func() { // ends with its answer, below
				_, err := c.WriteFile(ctx, "w", "f", strings.NewReader(fmt.Sprint("by", i, strings.Repeat(" again", 3+i))), client.WriteFile{IfMatch: f.ETag})
				won <- err
			}()
		}
		wins := 0
		for range cap(won) {
			err := <-won
			if err == nil {
				wins++
				continue
			}
			require.Equal(t, http.StatusPreconditionFailed, statusOf(t, err))
		}
		require.Equal(t, 1, wins)
	}
}
