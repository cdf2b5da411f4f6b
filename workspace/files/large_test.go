package files_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/files"
)

// pattern gives so many bytes that tell where they stand.
type pattern struct{ at, size int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-p.at))
	for i := range b[:n] {
		b[i] = byte((p.at + int64(i)) * 2654435761 >> 13)
	}
	p.at += int64(n)
	return n, nil
}

// peak is the most memory that is seen while what passes through is counted.
type peak struct {
	io.Writer
	n    int
	most uint64
}

func (p *peak) Write(b []byte) (int, error) {
	if p.n++; p.n%1024 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.most = max(p.most, m.Sys)
	}
	return p.Writer.Write(b)
}

// TestALargeFileTakesNoMemory streams a file in and out. In the full run it has 2 GiB.
func TestALargeFileTakesNoMemory(t *testing.T) {
	size := int64(64 << 20)
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		size = 2 << 30
	}
	f, _ := open(t, files.Options{Quota: size})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.Sys
	in := &peak{Writer: crc32.NewIEEE()}
	info, err := f.Write(t.Context(), "large", io.TeeReader(&pattern{size: size}, in), files.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, size, info.Size)
	r, err := f.Open("large")
	require.NoError(t, err)
	out := &peak{Writer: crc32.NewIEEE()}
	n, err := io.CopyBuffer(out, struct{ io.Reader }{r}, make([]byte, 64<<10))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, size, n)
	require.Equal(t, fmt.Sprint(in.Writer), fmt.Sprint(out.Writer))
	require.NotZero(t, out.most)
	require.Less(t, int64(max(in.most, out.most))-int64(before), int64(32<<20))
}

// TestManyFiles: a thousand of them, in and out; ten thousand in the full run.
func TestManyFiles(t *testing.T) {
	many := 1000
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		many = 10000
	}
	f, _ := open(t, files.Options{})
	for i := range many {
		write(t, f, fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprint(i))
	}
	list, more, err := f.List(t.Context(), ".", files.ListOptions{Depth: -1})
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, list, many+100)
	for i := range many {
		data, err := f.Read(t.Context(), fmt.Sprintf("d%d/f%d", i%100, i), 10)
		require.NoError(t, err)
		require.True(t, bytes.Equal(fmt.Append(nil, i), data))
	}
}
