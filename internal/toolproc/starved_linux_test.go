package toolproc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/test/starve"
	"github.com/coppice-run/coppice/test/toolbox"
)

// A tool that has no processor to say that it is well with is waited for.
func TestAToolWithoutAProcessor(t *testing.T) {
	const longer = 2 * time.Second // than a tool that has one may take
	o, _ := options(t, toolbox.Tool{})
	p, err := toolproc.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background(), -1)) })
	giveBack := starve.Deprive(t, p.PID())
	well := make(chan error, 1)
	go func() { well <- p.Healthy(t.Context()) }()
	select {
	case err = <-well: // a short turn may have been enough
	case <-time.After(longer):
		giveBack()
		err = <-well
	}
	require.NoError(t, err, "it was given up")
}
