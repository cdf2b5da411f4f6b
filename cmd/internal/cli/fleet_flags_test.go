package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/store"
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
		"tenants":                {func(f *serveFlags) { f.listen.addr, f.fleet.tenantMost = "0.0.0.0:7443", 8 }, secret, ""},
		"labels":                 {func(f *serveFlags) { f.fleet.labels = "gpu=yes, zone=a" }, secret, ""},
		"a label that is none":   {func(f *serveFlags) { f.fleet.labels = "gpu" }, secret, "--fleet-label"},
		"a bound of none":        {func(f *serveFlags) { f.fleet.tenantMost = 8 }, secret, "--fleet-tenant-sessions is for --listen"},
		"a negative bound":       {func(f *serveFlags) { f.fleet.tenantMost = -8 }, secret, "--fleet-tenant-sessions must not be negative"},
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

// TestFlagsOfAFleetThatKeeps: what is kept for other nodes is sealed with a key of the fleet, which
// is a file of its user's alone and not beside the records.
func TestFlagsOfAFleetThatKeeps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hibernate hibernation
		env       string
		kept      fleetStore
		says      string // "": it is right
	}{
		"none":                  {"", "", fleetStore{}, ""},
		"never":                 {"never", "lossy", fleetStore{}, ""},
		"whole":                 {"lossy", "", fleetStore{"/kept", "/key"}, ""},
		"by the environment":    {"", "lossless", fleetStore{"/kept", "/key"}, ""},
		"no folder":             {"lossy", "", fleetStore{}, "sealed with its own key, no other node could restore"},
		"none, by a variable":   {"", "lossy", fleetStore{}, "sealed with its own key, no other node could restore"},
		"the host's key":        {"lossless", "", fleetStore{"/kept", ""}, "--fleet-store needs --fleet-store-key"},
		"a key for nothing":     {"lossy", "", fleetStore{"", "/key"}, "--fleet-store-key is the key of what is in --fleet-store"},
		"for nothing":           {"never", "", fleetStore{"/kept", "/key"}, "are for --hibernate lossless or lossy"},
		"beside the records":    {"lossy", "", fleetStore{"/kept", "/kept/key"}, "is in --fleet-store"},
		"beside, by a detour":   {"lossy", "", fleetStore{"kept", "./kept/below/key"}, "is in --fleet-store"},
		"a name like another's": {"lossy", "", fleetStore{"/kept", "/kept.key"}, ""},
	} {
		f := serveFlags{fleet: fleetFlags{servers: "nats://127.0.0.1:4222", node: 1, kept: tc.kept}, hibernate: tc.hibernate}
		a := &app{engines: &Directories{}, Console: console.New(strings.NewReader(""), io.Discard, io.Discard, []string{"COPPICE_TOKEN=sixteen letters.", "COPPICE_HIBERNATE=" + tc.env})}
		_, err := f.checkFleet(a)
		if tc.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.says, name)
		_, usage := errors.AsType[console.UsageError](err)
		require.True(t, usage, name)
	}
	a := &app{engines: &Directories{}, Console: console.New(strings.NewReader(""), io.Discard, io.Discard, nil)}
	_, err := a.openFleet(t.Context(), serveFlags{fleet: fleetFlags{kept: fleetStore{"/kept", "/key"}}}, "")
	require.ErrorContains(t, err, "are for a node of a fleet")
}

// TestTheKeyOfAFleet: a file that is not there is not made, one that others can read is refused,
// and so is a folder that was sealed with another.
func TestTheKeyOfAFleet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := fleetStore{dir: filepath.Join(dir, "kept"), key: filepath.Join(dir, "key")}
	open := func() error {
		_, err := s.open(t.Context(), filepath.Join(dir, "home"))
		return err
	}
	require.ErrorContains(t, open(), "make one, once, and give it to all nodes")
	require.NoFileExists(t, s.key)
	require.NoError(t, os.WriteFile(s.key, bytes.Repeat([]byte("k"), store.KeySize), 0o600))
	require.NoError(t, open())
	require.NoError(t, open(), "and each further node")
	require.NoError(t, os.WriteFile(s.key, bytes.Repeat([]byte("o"), store.KeySize), 0o600))
	require.ErrorContains(t, open(), "sealed with another key")
	require.NoError(t, os.WriteFile(s.key, []byte("short"), 0o600))
	require.ErrorContains(t, open(), "5 bytes")
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Chmod(s.key, 0o640)) //nolint:gosec // that is what is refused
		require.ErrorContains(t, open(), "chmod 600")
	}
}
