// Package agentsandbox is [fleet.Sandboxes] over agent-sandbox, a controller of Kubernetes that
// gives each SandboxClaim a Sandbox, which is a pod of its own: one key in one pod, for code that
// is nobody's friend.
//
//	s, err := agentsandbox.Open(ctx, agentsandbox.Options{Config: config, Namespace: "agents", Template: "coppice", Server: server})
//	one, err := s.Claim(ctx, "work@")
//
// It is of agent-sandbox v0.2.1, whose objects are of version v1alpha1.
//
// # Guarantees
//
//   - One claim of a key: the SandboxClaim has a name that is made of the key, so that the API
//     server lets one of those who make it at once do so. All others read what that one has made.
//   - One binding of a claim: who finds the pod ready asks its server which life it is, and
//     writes that into an annotation of the claim, as a compare-and-swap of its resource version.
//     Everybody goes by what is written there.
//   - The fence is the UID of the claim with the life that it is bound to. [Sandboxes.Confirm] reads
//     both from the store of the cluster, by a look that begins after it was called: an answer
//     that was there before is the answer of the one server that had the key at the moment of the
//     look. Who shows no answer without that shows none of an older server after a newer one's,
//     whatever clocks say, and though both run.
//   - An epoch is not used twice: the first of a claim begins with the time at which the claim
//     was made, as the API server says, and ends with 20 bits of its UID; each further binding
//     counts one up. Two claims of a key that were made within the same second may have the same
//     one once in a million times; the fence is another one all the same.
//   - A server that is started again in its pod, or a pod that is made again, is another life:
//     the claim is bound anew, in the next epoch, and [fleet.Sandbox].Before says that there was
//     one before.
//   - What is not known to be over is not ended: a pod that is not ready is waited for. A claim
//     is deleted, by its UID, when its pod has come to its end, is gone from a claim that had it
//     from a warm pool, or has expired.
//   - Reads that decide are those of the store, not of a cache; those about one claim that come
//     at once share one. The watch decides nothing: it says when to look, and ends
//     [fleet.Sandbox].Over.
//
// # States of a key
//
//	no claim ──create──▶ claimed ──Ready, its server is asked──▶ bound, epoch e
//	   ▲  ▲                 │                                     │  ▲
//	   │  └─ it cannot be ──┘                      another life ──┘  │ bound, epoch e+1
//	   │                                                             │
//	   └───────────── End, or the pod has come to its end ───────────┘
//
// # What it needs
//
// In one namespace: to get, list, watch, create, patch and delete sandboxclaims of
// extensions.agents.x-k8s.io, to get sandboxes of agents.x-k8s.io, and to get pods. [Open] asks
// whether that is granted, and says what is not. The pod is called by its own address: the service
// of a sandbox has no port, its name takes a while to be known, and it selects pods by a hash of
// 32 bits.
//
// # What it does not do
//
// What a claim's deletion has ended leaves no record: when one process has deleted a claim whose
// pod had come to its end, and another makes the next one, the latter does not know that there was
// one before ([fleet.Sandbox].Before is 0). Nobody ends a sandbox that is not used;
// [Options].Lifetime bounds them all.
//
// A [Sandboxes] has one goroutine for its watch, and one for each look that runs, until Close.
// Any goroutine may call its methods. The package is a module of its own, so that the client of
// Kubernetes is linked only by programs that use it.
package agentsandbox
