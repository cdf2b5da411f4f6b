package etcdkv_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

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

// TestOnce: what may have been done is not sent again, so that it is never taken for what
// somebody else has done.
func TestOnce(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	member, s := &late{}, grpc.NewServer()
	pb.RegisterKVServer(s, member)
	go func() { _ = s.Serve(l) }() // ends with Stop
	t.Cleanup(s.Stop)
	d := open(t, etcdkv.Options{Endpoints: []string{"http://" + l.Addr().String()}})
	_, err = d.Swap(t.Context(), "k", nil, "")
	require.ErrorContains(t, err, "its time was up")
	require.NotErrorIs(t, err, fleet.ErrConflict)
	require.Error(t, d.Remove(t.Context(), "k", "7"))
	require.EqualValues(t, 2, member.asked.Load(), "each once")
}
