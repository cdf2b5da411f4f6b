// Package natskv is the [fleet.Directory] over the key-value store of NATS JetStream: a
// swap is an update with the revision that it replaces, which the leader of the bucket's
// stream decides. Package embed beside it has the server, for a fleet that has none.
//
//	d, err := natskv.Open(ctx, natskv.Options{URL: "nats://10.0.0.1:4222", Replicas: 3, Synced: true})
//	m, err := fleet.Join(ctx, fleet.Options{Directory: d, URL: "http://10.0.0.1:7777"})
//
// # Durability
//
// A server of NATS says by default that a write is done, and syncs its disk minutes later:
// a machine that fails meanwhile takes back a claim that another node has acted on, and
// then a key can have two owners. Every server of the bucket has to run with
//
//	jetstream { sync_interval: always }
//
// as those of package embed do. Clients cannot ask a server for that, unless they are
// administrators; so [Open] refuses a directory for which the caller does not vouch. It
// does ask the bucket whether it is on disk, and whether it forgets by itself.
//
// Any goroutine may call its methods. The package is a module of its own, so that NATS is
// linked only by programs that use it.
package natskv
