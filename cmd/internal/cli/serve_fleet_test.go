package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestWhereTheDirectoryIs: a directory on another machine is reached over TLS alone, and what
// opens it is in no command line.
func TestWhereTheDirectoryIs(t *testing.T) {
	t.Parallel()
	a := &app{Console: &console.Console{Env: []string{"COPPICE_TOKEN=0123456789abcdef"}}, engines: &Directories{Encrypted: []string{"etcds", "kubernetes"}}}
	for text, want := range map[string]string{
		"nats://127.0.0.1:4222":                        "",
		"nats://127.0.0.1:4222, nats://localhost:4223": "",
		"etcd://127.0.0.1:2379?prefix=x/":              "",
		"etcds://etcd.example.com:2379?ca=/ca.pem":     "",
		"kubernetes://":                                "",
		"kubernetes://agents":                          "",
		"127.0.0.1:4222":                               "is no server of a directory",
		"here":                                         "is no server of a directory",
		"etcds://user:word@127.0.0.1:2379":             "leave the user and the password out",
		"nats://10.0.0.1:4222":                         "not on the loopback interface",
		"etcd://etcd.example.com:2379":                 "not on the loopback interface",
	} {
		f := serveFlags{fleet: fleetFlags{servers: text}}
		_, err := f.checkFleet(a)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "word@", "a secret is not repeated")
	}
}
