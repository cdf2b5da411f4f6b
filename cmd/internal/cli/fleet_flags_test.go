package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// What nodes say to each other is not encrypted, and stays on the machine; who has not the
// one token is no node.
func TestFlagsOfAFleet(t *testing.T) {
	t.Parallel()
	const secret = "sixteen letters."
	whole := fleetFlags{servers: "nats://127.0.0.1:4222", node: 1}
	three := "nats://127.0.0.1:4222,nats://127.0.0.1:4223, nats://[::1]:4224"
	for name, tc := range map[string]struct {
		change func(f *serveFlags)
		token  string
		says   string // "": it is right
	}{
		"whole":                  {func(*serveFlags) {}, secret, ""},
		"three, one here":        {func(f *serveFlags) { f.fleet.servers, f.fleet.embed, f.fleet.node = three, true, 3 }, secret, ""},
		"no token":               {func(*serveFlags) {}, "", "COPPICE_TOKEN"},
		"a token that is short":  {func(*serveFlags) {}, secret[1:], "at least 16 characters"},
		"another machine":        {func(f *serveFlags) { f.fleet.servers = "nats://192.0.2.1:4222" }, secret, "is not on the loopback interface"},
		"one of three elsewhere": {func(f *serveFlags) { f.fleet.servers += ",nats://example.org:4222" }, secret, "is not on the loopback interface"},
		"a name that is no port": {func(f *serveFlags) { f.fleet.servers = "127.0.0.1" }, secret, "is no server of a directory"},
		"a password":             {func(f *serveFlags) { f.fleet.servers = "nats://me:secret@127.0.0.1:4222" }, secret, "leave the user and the password out"},
		"reached elsewhere":      {func(f *serveFlags) { f.fleet.url = "http://192.0.2.1:7788" }, secret, "is not on the loopback interface"},
		"two servers":            {func(f *serveFlags) { f.fleet.servers, f.fleet.embed = three[:43], true }, secret, "one server is in --fleet, or three are"},
		"none of the three":      {func(f *serveFlags) { f.fleet.servers, f.fleet.embed, f.fleet.node = three, true, 4 }, secret, "--fleet-node: 4"},
		"without a token":        {func(f *serveFlags) { f.e2bDebug = true }, secret, "--e2b-debug"},
		"beyond the machine":     {func(f *serveFlags) { f.listen.addr = "0.0.0.0:7443" }, secret, "--listen"},
	} {
		f := serveFlags{fleet: whole}
		tc.change(&f)
		a := &app{engines: &Directories{}, Console: console.New(strings.NewReader(""), io.Discard, io.Discard, []string{"COPPICE_TOKEN=" + tc.token})}
		servers, err := f.checkFleet(a)
		if tc.says == "" {
			require.NoError(t, err, name)
			require.NotEmpty(t, servers, name)
			continue
		}
		require.ErrorContains(t, err, tc.says, name)
		_, usage := errors.AsType[console.UsageError](err)
		require.True(t, usage, name)
	}
}
