// Package etcdkv is the [fleet.Directory] over etcd: a swap is a transaction that compares the
// revision of a key and puts another value, which a majority of the members has on disk
// before it is acknowledged. Reads are linearizable.
//
//	d, err := etcdkv.Open(ctx, etcdkv.Options{Endpoints: []string{"https://10.0.0.1:2379"}, TLS: t})
//	m, err := fleet.Join(ctx, fleet.Options{Directory: d, URL: "http://10.0.0.1:7777"})
//
// # What it promises
//
//   - No request is sent twice. So a conflict is one, and never what the first attempt of the
//     same swap has done.
//   - A watch goes on over connections that break, and over members that end. It ends with an
//     error when its member has no leader, and when the history between what it has told
//     and now was compacted: whoever begins it again is told all that there is.
//   - Leases of etcd have no part in it: who is dead is decided by a swap.
//
// # Durability
//
// Members that run with --unsafe-no-fsync forget, and so does a cluster that is brought back
// from a backup: claims that were made since are unknown then. End all nodes of the fleet
// before that. History that nobody compacts grows with each renewal of a node: run members
// with --auto-compaction-retention, as for any other use of etcd.
//
// Any goroutine may call its methods. The package is a module of its own, so that the client
// of etcd is linked only by programs that use it.
package etcdkv
