package etcdkv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coppice-run/coppice/fleet"
)

// Options says where the directory is.
type Options struct {
	// Endpoints are the URLs of the members that are asked, all of one cluster. Required.
	Endpoints []string
	// TLS says how members that are reached by https are known, and shows who this is. nil:
	// by the authorities that the machine trusts.
	TLS *tls.Config
	// Prefix is what all keys begin with: a fleet has one of its own. Default: "coppice/".
	Prefix string
	// Lease is how long a lease of the fleet's nodes lasts, as TTL of [fleet.Options]: what one
	// member does not answer is asked of another one well within it. Default: 15 s.
	Lease time.Duration
}

const (
	// page is how many entries are read at once.
	page = 1000
	// probe and answer are how often a connection is tried, and how long one that gives no
	// answer lasts. gRPC tries none more often, which a lease does not wait for: see [fleet.AnswerTime].
	probe, answer = 10 * time.Second, 2 * time.Second
	// tries is how often a member is asked that gives no answer, half of what a lease has room for:
	// a member that stands still keeps its connection, and the next request goes to another one.
	tries = fleet.Answers / 2
)

// Directory is the keys of a prefix. Make one with [Open].
type Directory struct{ fleet.Directory }

// store is what the directory asks: a guard of package fleet does the rest.
type store struct {
	client *clientv3.Client
	prefix string
	// within is how long one request may take.
	within time.Duration
}

// Open connects to a cluster, and returns once it has answered or ctx has ended. A connection
// that breaks later is made again, for ever.
func Open(ctx context.Context, o Options) (*Directory, error) {
	if o.Prefix == "" {
		o.Prefix = "coppice/"
	}
	if o.Lease == 0 {
		o.Lease = fleet.DefaultTTL
	}
	client, err := clientv3.New(clientv3.Config{
		Context: context.WithoutCancel(ctx), Endpoints: o.Endpoints, TLS: o.TLS,
		DialKeepAliveTime: probe, DialKeepAliveTimeout: answer, Logger: zap.NewNop(),
		// One attempt each. The client would repeat a swap when a member says that its time is
		// up, and take what the first attempt has done for a conflict of the second.
		MaxUnaryRetries: 1,
		DialOptions:     []grpc.DialOption{grpc.WithChainUnaryInterceptor(atOnce)},
	})
	if err != nil {
		return nil, fmt.Errorf("reach etcd at %s: %w", strings.Join(o.Endpoints, ","), err)
	}
	s := &store{client: client, prefix: o.Prefix, within: fleet.AnswerTime(o.Lease)}
	if _, err := s.read(ctx, o.Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
		_ = client.Close() // what failed is told
		return nil, fmt.Errorf("read %s at etcd at %s: %w", o.Prefix, strings.Join(o.Endpoints, ","), err)
	}
	return &Directory{fleet.Guard(s)}, nil
}

// atOnce has a request fail while no member can be reached, with the reason: the client would
// have it wait, and say only that its time was up.
func atOnce(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false))...)
}

// read asks for entries, and another member where one gives no answer, for half a lease at most.
func (s *store) read(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	for try := 1; ; try++ {
		once, cancel := context.WithTimeout(ctx, s.within)
		resp, err := s.client.Get(once, key, opts...)
		silent := err != nil && ctx.Err() == nil && (once.Err() != nil || status.Code(err) == codes.DeadlineExceeded)
		cancel()
		if !silent || try == tries {
			return resp, unanswered(err)
		}
	}
}

// unanswered is err as one that context.DeadlineExceeded is in, where a request had no answer
// within its time: it depends on who was first whether the client or its connection says so.
func unanswered(err error) error {
	if status.Code(err) == codes.DeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

// Get implements [fleet.Directory].
func (s *store) Get(ctx context.Context, key string) (fleet.Entry, error) {
	resp, err := s.read(ctx, s.prefix+key)
	if err != nil {
		return fleet.Entry{}, err
	}
	if len(resp.Kvs) == 0 {
		return fleet.Entry{Key: key}, nil
	}
	return fleet.Entry{Key: key, Value: resp.Kvs[0].Value, Rev: revision(resp.Kvs[0].ModRevision)}, nil
}

// Swap implements [fleet.Directory].
func (s *store) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	rev, ok := number(prev)
	if !ok {
		return "", fleet.ErrConflict // no entry has it
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=", rev)).
		Then(clientv3.OpPut(s.prefix+key, string(value))).Commit()
	if err != nil {
		return "", unanswered(err)
	}
	if !resp.Succeeded {
		return "", fleet.ErrConflict
	}
	return revision(resp.Header.Revision), nil
}

// Remove implements [fleet.Directory].
func (s *store) Remove(ctx context.Context, key string, prev fleet.Revision) error {
	rev, ok := number(prev)
	if !ok {
		return nil // no entry has it
	}
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.prefix+key), "=", rev)).
		Then(clientv3.OpDelete(s.prefix + key)).Commit()
	return unanswered(err)
}

// Watch implements [fleet.Directory].
func (s *store) Watch(ctx context.Context, prefix string, f func(fleet.Entry)) error {
	at, err := s.list(ctx, prefix, f)
	if err != nil {
		return err
	}
	f(fleet.Entry{})
	for resp := range s.client.Watch(clientv3.WithRequireLeader(ctx), s.prefix+prefix, clientv3.WithPrefix(), clientv3.WithRev(at+1)) {
		if err := resp.Err(); err != nil {
			return err
		}
		for _, e := range resp.Events {
			if e.Type == clientv3.EventTypePut {
				f(s.entry(string(e.Kv.Key), e.Kv.Value, e.Kv.ModRevision))
			}
		}
	}
	return errors.New("the connection was closed")
}

// list tells the entries of a prefix as they are at one revision of the store, and returns it.
func (s *store) list(ctx context.Context, prefix string, f func(fleet.Entry)) (at int64, err error) {
	from, end := s.prefix+prefix, clientv3.GetPrefixRangeEnd(s.prefix+prefix)
	for {
		resp, err := s.read(ctx, from, clientv3.WithRange(end), clientv3.WithRev(at), clientv3.WithLimit(page))
		if err != nil {
			return 0, err
		}
		if at == 0 {
			at = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			f(s.entry(string(kv.Key), kv.Value, kv.ModRevision))
		}
		if !resp.More {
			return at, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// Close implements [fleet.Directory].
func (s *store) Close() error { return s.client.Close() }

func (s *store) entry(key string, value []byte, rev int64) fleet.Entry {
	return fleet.Entry{Key: strings.TrimPrefix(key, s.prefix), Value: value, Rev: revision(rev)}
}

func revision(rev int64) fleet.Revision { return fleet.Revision(strconv.FormatInt(rev, 10)) }

// number is the revision as etcd has it, 0 for no entry.
func number(rev fleet.Revision) (n int64, ok bool) {
	if rev == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(string(rev), 10, 64)
	return n, err == nil && n > 0
}
