package cli

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/opportunity"
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

// TestOtherMachines: nobody listens beyond the loopback interface without certificates, and
// nodes say where they are reached.
func TestOtherMachines(t *testing.T) {
	t.Parallel()
	a := &app{Console: &console.Console{Env: []string{"COPPICE_TOKEN=0123456789abcdef"}}, engines: &Directories{}}
	whole := access.Files{Cert: "c", Key: "k", ClientCA: "a"}
	for name, tc := range map[string]struct {
		f    fleetFlags
		want string
	}{
		"all of it":              {fleetFlags{url: "https://one.example.com:7443", between: between{"0.0.0.0:7443", whole}}, ""},
		"an address":             {fleetFlags{between: between{"10.0.0.1:7443", whole}}, ""},
		"this machine":           {fleetFlags{url: "http://127.0.0.1:7788"}, ""},
		"nothing to show":        {fleetFlags{between: between{"10.0.0.1:7443", access.Files{}}}, "--fleet-listen needs --fleet-cert and --fleet-key and --fleet-ca"},
		"no authority":           {fleetFlags{between: between{"10.0.0.1:7443", access.Files{Cert: "c", Key: "k"}}}, "--fleet-listen needs --fleet-ca"},
		"files for nothing":      {fleetFlags{between: between{"", whole}}, "--fleet-cert is for --fleet-listen"},
		"no port":                {fleetFlags{between: between{"10.0.0.1", whole}}, "is not HOST:PORT"},
		"where is that":          {fleetFlags{between: between{"0.0.0.0:7443", whole}}, "--fleet-url"},
		"where is that, too":     {fleetFlags{between: between{":7443", whole}}, "--fleet-url"},
		"not encrypted":          {fleetFlags{url: "http://one.example.com:7443", between: between{":7443", whole}}, "https://node-1.example.com"},
		"another machine":        {fleetFlags{url: "http://10.0.0.1:7788"}, "not on the loopback interface"},
		"TLS without a listener": {fleetFlags{url: "https://127.0.0.1:7788"}, "is not like http://127.0.0.1:7788"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.f.servers = "nats://127.0.0.1:4222"
			_, err := serveFlags{fleet: tc.f}.checkFleet(a)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := a.openFleet(t.Context(), serveFlags{fleet: fleetFlags{between: between{":7443", whole}}}, "")
	require.ErrorContains(t, err, "--fleet-listen is for a node of a fleet")
}

// TestANodeThatIsNotReached: the way to another node has an end of its own, also where somebody
// takes the connection and says nothing, and by the error nothing was sent.
func TestANodeThatIsNotReached(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	silent, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	soon := opportunity.Budget{Opportunity: 100 * time.Millisecond}
	_, err = reach(t.Context(), soon, &tls.Config{ServerName: "node", MinVersion: tls.VersionTLS13}, "tcp", silent.Addr().String())
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "dial", op.Op)
	var spent *opportunity.SpentError
	require.ErrorAs(t, err, &spent)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = reach(ctx, dialing, &tls.Config{ServerName: "node", MinVersion: tls.VersionTLS13}, "tcp", silent.Addr().String())
	require.ErrorIs(t, err, context.Canceled)

	go func() { // ends with the listener
		for conn, err := silent.Accept(); err == nil; conn, err = silent.Accept() {
			_ = conn.Close()
		}
	}()
	_, err = reach(t.Context(), dialing, &tls.Config{ServerName: "node", MinVersion: tls.VersionTLS13}, "tcp", silent.Addr().String())
	require.ErrorAs(t, err, &op)
	require.Equal(t, "dial", op.Op, "whoever broke it off has read nothing of a request")
}

// TestSessionsOfNodes: a table of sessions says at which node of a fleet each is, where there is one.
func TestSessionsOfNodes(t *testing.T) {
	t.Parallel()
	alone, far := client.Session{Session: "a"}, client.Session{Session: "b", Node: "two-1"}
	require.NotContains(t, sessionRows([]client.Session{alone})[0], "node")
	rows := sessionRows([]client.Session{alone, far})
	for i, want := range []string{"node", "", "two-1"} {
		require.Equal(t, want, rows[i][len(rows[i])-1])
	}
	require.Contains(t, sessionLine(far), "at node two-1")
	require.NotContains(t, sessionLine(alone), "node")
}
