package coppice

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhereArtifactsAre(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    Options
		want string
	}{
		"none":                   {o: Options{}},
		"kept":                   {o: Options{Output: OutputOptions{KeepArtifacts: true}}, want: "/home/.coppice/artifacts"},
		"the directory":          {o: Options{Env: []string{"PI_ARTIFACTS_DIR=/a", "PI_SESSION_FILE=/s/x.jsonl"}, Output: OutputOptions{KeepArtifacts: true}}, want: "/a"},
		"beside the session":     {o: Options{Env: []string{"PI_SESSION_FILE=/s/x.jsonl"}}, want: "/s/x"},
		"a session of no .jsonl": {o: Options{Env: []string{"PI_SESSION_FILE=/s/x.db"}}},
		"the option":             {o: Options{Output: OutputOptions{Artifacts: "/o"}, Env: []string{"PI_ARTIFACTS_DIR=/a"}}, want: "/o"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Home = "/home"
			if tc.o.Env == nil {
				tc.o.Env = []string{}
			}
			s, err := OpenArtifacts(tc.o)
			if tc.want == "" {
				require.ErrorIs(t, err, ErrOptions)
				return
			}
			require.NoError(t, err)
			require.Equal(t, filepath.FromSlash(tc.want), s.Dir())
		})
	}
}

func TestTextsLimitedInTokens(t *testing.T) {
	t.Parallel()
	r, err := Options{Home: t.TempDir(), Output: OutputOptions{Artifacts: t.TempDir(), Tokens: 5}}.resolve()
	require.NoError(t, err)
	require.Equal(t, 5, r.hub().Result.Tokens)
	require.Equal(t, 20_000, OutputOptions{Tokens: -1}.tokens())
	require.Zero(t, OutputOptions{}.tokens())
	require.Error(t, Request{Tokens: -1}.check())
}
