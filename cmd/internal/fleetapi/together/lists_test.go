package together_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/together"
)

// TestEachOnce: a session that is kept where all nodes have it stands in a list once, at none.
func TestEachOnce(t *testing.T) {
	t.Parallel()
	all := together.Entries([]byte(`{"sessions":[{"session":"a","cwd":"/w","state":"hibernated"},{"session":"b","cwd":"/w","state":"hibernated"},
		{"session":"a","cwd":"/w","workspace":"w","state":"hibernated"}]}`), "sessions", "one", true)
	all = append(all, together.Entries([]byte(`{"sessions":[{"session":"a","cwd":"/w","state":"hibernated"},{"session":"b","cwd":"/w","state":"idle"},
		{"session":"a","cwd":"/w","workspace":"w","state":"hibernated"}]}`), "sessions", "two", true)...)
	var got []string
	for _, text := range together.Once(all) {
		got = append(got, string(text))
	}
	require.Equal(t, []string{
		`{"cwd":"/w","session":"a","state":"hibernated"}`,
		`{"cwd":"/w","node":"one","session":"a","state":"hibernated","workspace":"w"}`,
		`{"cwd":"/w","node":"two","session":"b","state":"idle"}`,
		`{"cwd":"/w","node":"two","session":"a","state":"hibernated","workspace":"w"}`,
	}, got)

	// A checkpoint, too: those of workspaces stay with their nodes.
	all = together.Entries([]byte(`{"checkpoints":[{"name":"first","session":"a"},{"name":"first","session":"a","workspace":"w"}]}`), "checkpoints", "one", true)
	all = append(all, together.Entries([]byte(`{"checkpoints":[{"name":"first","session":"a"}]}`), "checkpoints", "two", true)...)
	got = nil
	for _, text := range together.Once(all) {
		got = append(got, string(text))
	}
	require.Equal(t, []string{`{"name":"first","session":"a"}`, `{"name":"first","node":"one","session":"a","workspace":"w"}`}, got)
}
