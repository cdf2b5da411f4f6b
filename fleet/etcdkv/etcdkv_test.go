package etcdkv_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/etcdkv"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o etcdkv.Options) *etcdkv.Directory {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fleettest.Patience)
	defer cancel()
	d, err := etcdkv.Open(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// late is a member that says of each transaction that its time was up: it may have been done.
type late struct {
	pb.UnimplementedKVServer
	asked atomic.Int64
}

func (l *late) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
}

func (l *late) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	l.asked.Add(1)
	return nil, status.Error(codes.DeadlineExceeded, "its time was up")
}

// frozen is a member that takes requests, and answers none until the test ends.
type frozen struct {
	pb.UnimplementedKVServer
	asked atomic.Int64
	end   <-chan struct{}
}

var errFrozen = status.Error(codes.Unavailable, "the test has ended")

func (f *frozen) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	f.asked.Add(1)
	<-f.end
	return nil, errFrozen
}

func (f *frozen) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	f.asked.Add(1)
	<-f.end
	return nil, errFrozen
}

// well is a member that does what it is asked.
type well struct{ late }

func (*well) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 2}, Succeeded: true}, nil
}

// serve has a member take requests until the test ends, and returns where.
func serve(t *testing.T, member pb.KVServer) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	pb.RegisterKVServer(s, member)
	go func() { _ = s.Serve(l) }() // ends with Stop
	t.Cleanup(s.Stop)
	return "http://" + l.Addr().String()
}

// TestAMemberIsFrozen: what a member that stands still does not answer is read at another one, and a
// swap is given up so soon that the next one is within the lease.
func TestAMemberIsFrozen(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	still := &frozen{end: t.Context().Done()}
	d := open(t, etcdkv.Options{Endpoints: []string{serve(t, still), serve(t, &well{})}, Lease: lease})
	for still.asked.Load() < 2 {
		_, err := d.Get(t.Context(), "k")
		require.NoError(t, err)
	}
	asked := still.asked.Load()
	begun, refused := time.Now(), 0
	for still.asked.Load() == asked {
		_, err := d.Swap(t.Context(), "k", []byte("v"), "")
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			refused++
		}
	}
	require.Equal(t, 1, refused)
	_, err := d.Swap(t.Context(), "k", []byte("v"), "")
	require.NoError(t, err)
	require.Less(t, time.Since(begun), lease)
}

// TestOnce: what may have been done is not sent again, so that it is never taken for what
// somebody else has done.
func TestOnce(t *testing.T) {
	t.Parallel()
	member := &late{}
	d := open(t, etcdkv.Options{Endpoints: []string{serve(t, member)}})
	_, err := d.Swap(t.Context(), "k", nil, "")
	require.ErrorContains(t, err, "its time was up")
	require.NotErrorIs(t, err, fleet.ErrConflict)
	require.Error(t, d.Remove(t.Context(), "k", "7"))
	require.EqualValues(t, 2, member.asked.Load(), "each once")
}
