package cli

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/workspace"
)

func TestFlagsOfListen(t *testing.T) {
	t.Parallel()
	whole := listening{addr: "127.0.0.1:0", files: access.Files{Cert: "c", Key: "k"}, tokens: "t", sessions: 1}
	for name, tc := range map[string]struct {
		change func(f *serveFlags)
		says   string // "": it is right
	}{
		"whole":                     {func(*serveFlags) {}, ""},
		"none":                      {func(f *serveFlags) { f.listen = listening{} }, ""},
		"no certificate":            {func(f *serveFlags) { f.listen.files.Cert = "" }, "--listen needs --tls-cert:"},
		"no key and no tokens":      {func(f *serveFlags) { f.listen.files.Key, f.listen.tokens = "", "" }, "--listen needs --tls-key and --tokens:"},
		"the next step":             {func(f *serveFlags) { f.listen.tokens = "" }, "coppice token create"},
		"a certificate for nothing": {func(f *serveFlags) { f.listen.addr = "" }, "--tls-cert is for --listen"},
		"no walls for nothing":      {func(f *serveFlags) { f.listen = listening{unconfined: true} }, "--unconfined-tenants is for --listen"},
		"a CA for nothing":          {func(f *serveFlags) { f.listen = listening{files: access.Files{ClientCA: "x"}} }, "--tls-client-ca is for --listen"},
		"no sessions":               {func(f *serveFlags) { f.listen.sessions = 0 }, "--tenant-sessions"},
		"without a token":           {func(f *serveFlags) { f.e2bDebug = true }, "--e2b-debug"},
		"sessions that are kept":    {func(f *serveFlags) { f.keep = true }, "--keep-sessions"},
		"a gateway":                 {func(f *serveFlags) { f.Backend = "gateway" }, "--backend gateway"},
	} {
		f := serveFlags{listen: whole}
		tc.change(&f)
		err := f.listen.check(&f, nil)
		if tc.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.says, name)
		_, usage := errors.AsType[console.UsageError](err)
		require.True(t, usage, name)
	}
}

func TestSeveralTenantsNeedAWall(t *testing.T) {
	t.Parallel()
	one, two, none := []string{"a"}, []string{"a", "b"}, errors.New("there is none")
	require.NoError(t, (&listening{}).may(nil)("a", two))
	require.NoError(t, (&listening{}).may(none)("a", one))
	require.NoError(t, (&listening{unconfined: true}).may(none)("a", two))
	require.ErrorContains(t, (&listening{}).may(none)("a", two), "--unconfined-tenants")
	for _, rung := range []string{kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationUser, "", "x"} {
		require.Error(t, walled(rung), rung)
	}
}

func TestLimitsOfATenant(t *testing.T) {
	t.Parallel()
	var l kernel.Limits
	require.NoError(t, within("limits.memory_bytes", &l.Memory, 5))
	require.EqualValues(t, 5, l.Memory, "what is left out is the server's")
	l.Memory = 6
	err := within("limits.memory_bytes", &l.Memory, 5)
	refused, ok := errors.AsType[*workspace.OptionsError](err)
	require.True(t, ok)
	require.Contains(t, refused.Problem, "at most 5")
	require.NoError(t, within("limits.files", &l.Files, 0))
	l.Files = 7
	require.NoError(t, within("limits.files", &l.Files, 0))
	require.Equal(t, 7, l.Files)
}
