package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
)

// TestReadArtifact reads all of one, or some of its bytes.
func TestReadArtifact(t *testing.T) {
	t.Parallel()
	const whole = "0123456789"
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/artifacts/3" {
			says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no such artifact"}}`)(w, r)
			return
		}
		http.ServeContent(w, r, "3.txt", time.Time{}, strings.NewReader(whole))
	})
	for _, tc := range []struct {
		offset, length int64
		want           string
	}{
		{0, 0, whole}, {0, 3, "012"}, {4, 0, "456789"}, {4, 2, "45"}, {9, 100, "9"},
	} {
		in, err := c.ReadArtifact(ctx, 3, tc.offset, tc.length)
		require.NoError(t, err)
		data, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		require.Equal(t, tc.want, string(data), "%+v", tc)
	}
	_, err := c.ReadArtifact(ctx, 3, 100, 1)
	require.ErrorContains(t, err, "status 416")
	_, err = c.ReadArtifact(ctx, 4, 0, 0)
	require.ErrorContains(t, err, "no such artifact")
}
