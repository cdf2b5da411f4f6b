package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestFlagsOfAFront: what clients show opens no sandbox, and what goes to other machines is
// encrypted.
func TestFlagsOfAFront(t *testing.T) {
	t.Parallel()
	files := access.Files{Cert: "c", Key: "k", ClientCA: "a"}
	for name, tc := range map[string]struct {
		change func(f *frontFlags)
		env    string
		says   string // "": it is right
	}{
		"whole":                   {func(*frontFlags) {}, "", ""},
		"of its own authority":    {func(f *frontFlags) { f.inner = files }, "", ""},
		"no sandboxes":            {func(f *frontFlags) { f.sandboxes = "" }, "", "is not like kubernetes://"},
		"a name that is no URL":   {func(f *frontFlags) { f.sandboxes = "agents" }, "", "is not like kubernetes://"},
		"a password":              {func(f *frontFlags) { f.sandboxes = "kubernetes://me:secret@agents" }, "", "leave the user and the password out"},
		"no certificate":          {func(f *frontFlags) { f.between = between{} }, "", "--fleet-cert"},
		"no key":                  {func(f *frontFlags) { f.between.files.Key = "" }, "", "--fleet-key"},
		"half of what is shown":   {func(f *frontFlags) { f.inner.Cert = "c" }, "", "go together"},
		"a short token":           {func(*frontFlags) {}, "COPPICE_TOKEN=short", "at least 16 characters"},
		"no token of sandboxes":   {func(*frontFlags) {}, sandboxToken + "=", "coppice token create"},
		"the token of clients":    {func(*frontFlags) {}, sandboxToken + "=sixteen letters.", "another one than COPPICE_TOKEN"},
		"no patience":             {func(f *frontFlags) { f.patience = 0 }, "", "--patience"},
		"an address without port": {func(f *frontFlags) { f.between.addr = "0.0.0.0" }, "", "HOST:PORT"},
	} {
		f := frontFlags{sandboxes: "kubernetes://agents?template=coppice", patience: time.Minute, between: between{addr: "0.0.0.0:7443", files: files}}
		tc.change(&f)
		env := []string{"COPPICE_TOKEN=sixteen letters.", sandboxToken + "=another"}
		if name, _, is := strings.Cut(tc.env, "="); is {
			for i := range env {
				if strings.HasPrefix(env[i], name+"=") {
					env[i] = tc.env
				}
			}
		}
		a := &app{engines: &Directories{}, Console: console.New(strings.NewReader(""), io.Discard, io.Discard, env)}
		at, err := f.check(a)
		if tc.says == "" {
			require.NoError(t, err, name)
			require.Equal(t, "agents", at.Host)
			continue
		}
		require.ErrorContains(t, err, tc.says, name)
		require.ErrorAs(t, err, &console.UsageError{}, name)
	}
}
