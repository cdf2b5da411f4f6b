package natskv_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/fleet/natskv"
	"github.com/coppice-run/coppice/fleet/natskv/embed"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(asServer); text != "" {
		os.Exit(beServer(text))
	}
	goleak.VerifyTestMain(m)
}

// asServer has this program be a server of a cluster, with the [embed.Options] that it holds.
const asServer = "COPPICE_TEST_AS_NATS"

func beServer(options string) int {
	var o embed.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		panic(err)
	}
	if _, err := embed.Start(context.Background(), o); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the test
	return 0
}

// serve runs a server over a folder until the test ends.
func serve(t *testing.T, o embed.Options) *embed.Server {
	t.Helper()
	s, err := embed.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func open(t *testing.T, o natskv.Options) *natskv.Directory {
	t.Helper()
	o.Synced = true
	d, err := natskv.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	s := serve(t, embed.Options{Dir: t.TempDir()})
	var buckets atomic.Int64
	fleettest.Run(t, func(*testing.T) func(*testing.T) fleet.Directory {
		name := "bucket" + strconv.FormatInt(buckets.Add(1), 10)
		return func(t *testing.T) fleet.Directory { return open(t, natskv.Options{URL: s.URL(), Bucket: name}) }
	})
}

// TestServerRestarts: nothing is lost, and everything goes on, when the server ends and
// another one comes in its place.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := embed.Start(t.Context(), embed.Options{Dir: dir, Token: "a token"})
	require.NoError(t, err)
	port := s.Port()
	options := natskv.Options{URL: s.URL(), Connect: []nats.Option{nats.Token("a token"), nats.ReconnectWait(10 * time.Millisecond)}}
	fleettest.Outage(t, open(t, options), open(t, options), s.Stop, func() {
		serve(t, embed.Options{Dir: dir, Token: "a token", Port: port})
	})
}

// TestUnsafe: what could lose a claim is refused.
func TestUnsafe(t *testing.T) {
	t.Parallel()
	s := serve(t, embed.Options{Dir: t.TempDir()})
	_, err := natskv.Open(t.Context(), natskv.Options{URL: s.URL()})
	require.ErrorIs(t, err, natskv.ErrUnsafe, "nobody vouches for the servers")

	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for name, c := range map[string]jetstream.KeyValueConfig{
		"memory": {Storage: jetstream.MemoryStorage},
		"ttl":    {TTL: time.Hour},
	} {
		c.Bucket = name
		_, err := js.CreateKeyValue(t.Context(), c)
		require.NoError(t, err)
		_, err = natskv.Open(t.Context(), natskv.Options{URL: s.URL(), Bucket: name, Synced: true})
		require.ErrorIs(t, err, natskv.ErrUnsafe, name)
	}
	_, err = embed.Start(t.Context(), embed.Options{})
	require.Error(t, err)
	_, err = embed.Start(t.Context(), embed.Options{Dir: t.TempDir(), Host: "0.0.0.0"})
	require.ErrorContains(t, err, "token")
}
