package main

import (
	"log/slog"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
)

// TestWhoVouches: servers that are none of this program's are refused, with the next step,
// unless the command line vouches for them.
func TestWhoVouches(t *testing.T) {
	t.Parallel()
	const word = "what all nodes of this fleet know"
	for name, tc := range map[string]struct {
		token  string
		synced bool
		want   error
	}{
		"one of another's":                  {"", false, cli.ErrFleetUsage},
		"one of another's, with its word":   {"", true, nil},
		"one that a node of the fleet runs": {secret(cli.DirectoryOptions{Secret: word}), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := embed.Start(t.Context(), embed.Options{Dir: t.TempDir(), Token: tc.token})
			require.NoError(t, err)
			t.Cleanup(s.Stop)
			at, err := url.Parse(s.URL())
			require.NoError(t, err)
			at.User = nil
			d, stop, err := open(t.Context(), cli.DirectoryOptions{URLs: []*url.URL{at}, Secret: word, Synced: tc.synced, Logger: slog.New(slog.DiscardHandler)})
			require.ErrorIs(t, err, tc.want)
			if tc.want != nil {
				require.ErrorContains(t, err, "--fleet-synced")
				return
			}
			require.NotNil(t, d)
			require.NoError(t, stop())
		})
	}
}
