package jupyter_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
)

// TestAskTellsSilenceFromAbsence tells a server that does not answer from one that
// is not there.
func TestAskTellsSilenceFromAbsence(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	how, err := jupyter.AskExternal(ctx, server.URL, "")
	require.Equal(t, jupyter.ExternalTimeout, how)
	require.EqualError(t, err, "external gateway at "+server.URL+" is not reachable (timeout)")

	server.Close()
	how, err = jupyter.AskExternal(t.Context(), server.URL, "")
	require.Equal(t, jupyter.ExternalUnreachable, how)
	require.ErrorContains(t, err, "is not reachable: ")
}
