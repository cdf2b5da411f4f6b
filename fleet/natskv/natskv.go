package natskv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coppice-run/coppice/fleet"
)

// Options says where the directory is.
type Options struct {
	// URL is where servers of NATS are reached, several with commas between. Required.
	URL string
	// Connect says how: certificates, credentials, nats.DontRandomize where the first of several
	// servers is the nearest. What is said of reconnecting for ever and of pings is this package's
	// own.
	Connect []nats.Option
	// Lease is how long a lease of the fleet's nodes lasts, as TTL of [fleet.Options]: a server
	// that is silent is left for another one well within it. Default: 15 s.
	Lease time.Duration
	// Bucket is the name of the key-value store, which is made when it is not there.
	// Default: "coppice".
	Bucket string
	// Replicas is on how many servers a bucket is that is made: 1, 3 or 5. Default: 1.
	Replicas int
	// Synced says that each server of the bucket syncs its disk before it acknowledges a
	// write (sync_interval: always). Required: see the package comment.
	Synced bool
}

// ErrUnsafe says that what the bucket promises is not enough to own anything by it.
var ErrUnsafe = errors.New("the bucket cannot be trusted with ownership")

// headers is what a bucket counts of a write besides its value.
const headers = 4 << 10

// Directory is a bucket. Make one with [Open].
type Directory struct{ fleet.Directory }

// store is what the directory asks: a guard of package fleet does the rest.
type store struct {
	kv jetstream.KeyValue
	// stream is what the bucket stands on.
	stream jetstream.Stream
	line   *line
}

// Open connects to a bucket, as long as ctx lasts. The error matches [ErrUnsafe] when the
// bucket must not be used. A connection that breaks later, or whose server is silent, is made
// again, for ever, with another server where there is one; what is asked meanwhile fails at once.
func Open(ctx context.Context, o Options) (*Directory, error) {
	if !o.Synced {
		return nil, fmt.Errorf("open the directory: %w: nobody vouches that its servers sync always", ErrUnsafe)
	}
	if o.Bucket == "" {
		o.Bucket = "coppice"
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Lease == 0 {
		o.Lease = fleet.DefaultTTL
	}
	nc, err := nats.Connect(o.URL, slices.Concat(usual(o.Lease), o.Connect, own(o.Lease))...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	kv, stream, err := bucket(ctx, nc, o)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("open the bucket %q: %w", o.Bucket, err)
	}
	return &Directory{fleet.Guard(&store{kv: kv, stream: stream, line: newLine(nc, o.Lease)})}, nil
}

// bucket finds the bucket, or makes it.
func bucket(ctx context.Context, nc *nats.Conn, o Options) (jetstream.KeyValue, jetstream.Stream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, err
	}
	kv, err := js.KeyValue(ctx, o.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: o.Bucket, Description: "which node of Coppice has which session",
			MaxValueSize: fleet.MaxValue + headers, History: 1, Storage: jetstream.FileStorage, Replicas: o.Replicas,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another node was first
			kv, err = js.KeyValue(ctx, o.Bucket)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := kv.Status(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ask what it is: %w", err)
	}
	if s.TTL() != 0 {
		return nil, nil, fmt.Errorf("%w: it forgets what is older than %s", ErrUnsafe, s.TTL())
	}
	if c := s.Config(); c.Storage != jetstream.FileStorage {
		return nil, nil, fmt.Errorf("%w: it is not on disk", ErrUnsafe)
	}
	stream, err := js.Stream(ctx, "KV_"+o.Bucket)
	if err != nil {
		return nil, nil, fmt.Errorf("find the stream of the bucket: %w", err)
	}
	return kv, stream, nil
}

// Get implements [fleet.Directory]. A server that is behind the leader may answer it. Each of the
// servers is asked by chance, so that one that is silent costs another attempt.
func (s *store) Get(ctx context.Context, key string) (fleet.Entry, error) {
	var e jetstream.KeyValueEntry
	err := s.line.again(ctx, func(ctx context.Context) (err error) {
		e, err = s.kv.Get(ctx, key)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fleet.Entry{Key: key}, nil
	}
	if err != nil {
		return fleet.Entry{}, err
	}
	return entry(e), nil
}

// Swap implements [fleet.Directory]. It is tried once: a second attempt would take what the first
// has done for a conflict.
func (s *store) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	var rev uint64
	err := s.line.once(ctx, func(ctx context.Context) (err error) {
		rev, err = s.swap(ctx, key, value, prev)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return "", fleet.ErrConflict
	}
	return revision(rev), err
}

func (s *store) swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (uint64, error) {
	if prev == "" {
		return s.kv.Create(ctx, key, value)
	}
	seq, err := strconv.ParseUint(string(prev), 10, 64)
	if err != nil || seq == 0 {
		return 0, jetstream.ErrKeyRevisionMismatch // no entry has it
	}
	return s.kv.Update(ctx, key, value, seq)
}

// Remove implements [fleet.Directory]. The message of the entry is purged, with those of the
// key before it, and none behind it: a deletion, as the store has it, would leave a marker
// in its place, and one without a revision could take a later entry.
func (s *store) Remove(ctx context.Context, key string, prev fleet.Revision) error {
	seq, err := strconv.ParseUint(string(prev), 10, 64)
	if err != nil || seq == 0 || seq == math.MaxUint64 {
		return nil //nolint:nilerr // no entry has it
	}
	subject := "$KV." + s.kv.Bucket() + "." + key
	return s.line.again(ctx, func(ctx context.Context) error {
		return s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(seq+1))
	})
}

// Watch implements [fleet.Directory]. It goes on over connections that break.
func (s *store) Watch(ctx context.Context, prefix string, f func(fleet.Entry)) error {
	w, err := s.kv.Watch(ctx, prefix+">", jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // the connection may be closed
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the connection was closed")
			case e == nil:
				f(fleet.Entry{})
			default:
				f(entry(e))
			}
		}
	}
}

// Close implements [fleet.Directory].
func (s *store) Close() error {
	s.line.nc.Close()
	return nil
}

func entry(e jetstream.KeyValueEntry) fleet.Entry {
	return fleet.Entry{Key: e.Key(), Value: e.Value(), Rev: revision(e.Revision())}
}

func revision(seq uint64) fleet.Revision { return fleet.Revision(strconv.FormatUint(seq, 10)) }
