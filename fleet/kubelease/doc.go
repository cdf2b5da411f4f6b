// Package kubelease is the [fleet.Directory] over an API server of Kubernetes, for fleets that
// have no store of their own: each entry is a Lease object, and a swap is an update with the
// resource version and the UID that it replaces.
//
//	d, err := kubelease.Open(ctx, kubelease.Options{Config: config, Namespace: "coppice"})
//	m, err := fleet.Join(ctx, fleet.Options{Directory: d, URL: "http://10.0.0.1:7777"})
//
// It is for small fleets. Each renewal of a node and each claim is a write to the etcd of the
// cluster, and one server takes some hundred requests at a time from everybody: tens of nodes
// with a TTL of 15 s and more are a load that it does not feel, a thousand are.
//
// # What it promises
//
//   - No request that changes something is sent twice. The client of Kubernetes would repeat
//     one that a server has put off, and take what the first has done for a conflict.
//   - A revision is the UID of an object with its resource version: a server takes an update
//     of a Lease that is gone for the wish to make it, unless it names a UID.
//   - Reads are those of the store, not of a cache. A watch goes on over connections that
//     break, and ends with an error when the server no longer has what came meanwhile.
//   - What is a Lease here is none of the leases of Kubernetes: nobody renews it by time, and
//     its spec is empty. Who is dead is decided by a swap.
//
// # What it needs
//
// To get, list, watch, create, update and delete leases of coordination.k8s.io in one
// namespace. [Open] asks whether that is granted, and says what is not.
//
// Any goroutine may call its methods. The package is a module of its own, so that the client
// of Kubernetes is linked only by programs that use it.
package kubelease
