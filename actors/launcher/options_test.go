package launcher_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
)

// TestDefaultsAreThoseOfTheDocumentation, and what was set stays.
func TestDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	o := launcher.Options{Home: home, WarmMax: 2, MaxWaiting: -1}.WithDefaults()
	require.NotNil(t, o.Logger)
	o.Logger = nil
	require.Equal(t, launcher.Options{
		Dir: filepath.Join(home, ".coppice", "tools"), Artifacts: filepath.Join(home, ".coppice", "tool-runs"), Brand: "coppice", Home: home,
		WarmMax: 2, Heartbeat: 5 * time.Second, StartTimeout: time.Minute, StopGrace: 5 * time.Second, CancelGrace: 5 * time.Second,
		MaxParallel: 64, MaxWaiting: -1, ArtifactBytes: 10 << 30, ArtifactFiles: 10_000,
	}, o)
	require.Empty(t, launcher.Options{}.WithDefaults().Dir, "only the environment knows the home")
}

// TestTheEnvironmentIsAskedOnce, by the function that says so.
func TestTheEnvironmentIsAskedOnce(t *testing.T) {
	t.Parallel()
	home, tools := t.TempDir(), t.TempDir()
	env := []string{"COPPICE_HOME=" + home, "COPPICE_TOOLS=" + tools}
	o, err := launcher.Options{Env: env, Brand: "acme"}.FromEnv()
	require.NoError(t, err)
	require.Equal(t, launcher.Options{Dir: tools, Brand: "acme", Home: home, Env: env}, o)
	require.NoError(t, o.WithDefaults().Validate())

	o, err = launcher.Options{Env: env, Dir: "here", Home: "there", Artifacts: "files"}.FromEnv()
	require.NoError(t, err)
	wd, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(wd, "here"), filepath.Join(wd, "there"), filepath.Join(wd, "files")}, []string{o.Dir, o.Home, o.Artifacts})

	plain := launcher.Options{Env: env, Home: home}.WithDefaults()
	require.Equal(t, filepath.Join(home, ".coppice", "tools"), plain.Dir, "the defaults do not look at Env")
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]launcher.Options{
		"WarmMax is negative":       {WarmMax: -1},
		"MaxWaiting is negative":    {MaxWaiting: -1},
		"StopGrace is negative":     {StopGrace: -1},
		"ArtifactBytes is negative": {ArtifactBytes: -1},
		"is not a folder of tools":  {Dir: "options_test.go"},
		"is not a plain name":       {Brand: "a/b"},
	} {
		o.Home = t.TempDir()
		_, err := launcher.OpenToolbox(o)
		require.ErrorIs(t, err, launcher.ErrOptions, says)
		require.ErrorContains(t, err, says)
		_, err = launcher.Start(t.Context(), o)
		require.ErrorIs(t, err, launcher.ErrOptions, says)
		_, err = launcher.Within(o, launcher.Options{})
		require.ErrorIs(t, err, launcher.ErrOptions, says)
	}
	require.ErrorContains(t, launcher.Options{}.WithDefaults().Validate(), "is not an absolute path")
	_, err := launcher.Within(launcher.Options{Home: t.TempDir(), OnEvent: func(messages.Lifecycle) {}}, launcher.Options{})
	require.ErrorIs(t, err, launcher.ErrOptions)
}

// TestALauncherLeansOnItsHost for what it leaves out.
func TestALauncherLeansOnItsHost(t *testing.T) {
	t.Parallel()
	home, own := t.TempDir(), t.TempDir()
	for _, tc := range []struct {
		o    launcher.Options
		want string
	}{
		{launcher.Options{}, filepath.Join(home, ".acme", "tools")},
		{launcher.Options{Home: own}, filepath.Join(own, ".acme", "tools")},
		{launcher.Options{Brand: "mine"}, filepath.Join(home, ".mine", "tools")},
		{launcher.Options{Env: []string{"COPPICE_TOOLS=" + own}}, own},
	} {
		c, err := launcher.Within(tc.o, launcher.Options{Brand: "acme", Home: home, Env: []string{}})
		require.NoError(t, err)
		require.Equal(t, tc.want, launcher.DirOf(c))
	}
}
