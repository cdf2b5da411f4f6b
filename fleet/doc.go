// Package fleet lets several Coppice nodes share the ownership of session keys: which
// node has the interpreter of a key, whether that node is alive, and what becomes of the
// key when it is not. No program is linked with it that does not import it.
//
// Who may call it: a program that serves sessions, from any goroutine but an actor's, as
// most methods wait for a network. It knows nothing of hosts, sessions and HTTP; a key is
// a string, and what runs is the caller's.
//
// # What it stands on
//
// A [Directory] gives one thing: a linearizable compare-and-swap of one key, and a watch.
// Reads may be stale, a swap may end without an answer, and one that was given up may
// still happen. All that is decided is decided by a swap; to remove an entry decides
// nothing. Package fleettest has a directory in memory, and the suite that each directory
// passes. Modules of their own have those that nodes share: natskv over NATS JetStream,
// etcdkv over etcd, kubelease over Lease objects of Kubernetes. What they have alike is the
// guard's ([Guard]).
//
// # Words
//
//   - node: one life of a process that serves sessions. Its ID is new for each life, so
//     that whatever names the ID means this life and no later one.
//   - lease: a node may act until TTL after the moment before its last acknowledged
//     renewal was sent, by its own clock. See [Clock].
//   - certificate: the record of a node, swapped to dead by another one. It is final.
//   - claim: the record that says which node owns a key, in which epoch.
//   - epoch: the number of an ownership of a key, from 1. Each new owner has the next, or
//     a later one after keys were forgotten.
//   - floor: the last epoch of all keys that were forgotten, or a later one. One record of
//     the directory has it.
//   - turn: one piece of work on a key, from its beginning to its answer.
//
// # States of a node
//
//	          renewal                      TTL without one
//	joining ──────────▶ up ⇄ draining ─────────────────────▶ suspended
//	                     │       │  ◀──────────────────────      │
//	               Leave │       │         renewal               │ certificate
//	                     ▼       ▼                               ▼
//	                    left (final)                        dead (final)
//
// A suspended node keeps what it has: while the directory is away no state is lost. It
// begins no turn and holds back answers, until a renewal is acknowledged or it learns that
// it is dead. Whoever sees that it is ([Member.Done]) ends all that its sessions hold, and
// joins again as another node.
//
// # States of a key
//
//	unowned ─claim, epoch 1─▶ owned ─release─▶ released ─claim, epoch+1─▶ owned
//	   ▲                        │                   │
//	   │                        └─ its node is over ┤ or [Options].Forget passes
//	   │                             │              ▼
//	   │                             │          forgotten: no record, and
//	   │                             │          the floor is not below its epoch
//	   │                             └─claim, epoch+1─▶ owned    │
//	   └─────────── claimed again: the epoch after the floor ────┘
//
// # Guarantees
//
//  1. One owner of an epoch: at most one [Ownership] of a key and an epoch exists, in all
//     of the fleet. Proof: it is made by a swap from the claim before, and a node has one
//     object for each claim that names it.
//  2. No answer of an older epoch after a newer one's: what [Turn.Answer] lets out was
//     checked at a moment at which nobody else could own the key. Proof: another node can
//     own it only after a certificate, and one is made only after TTL and a tenth have
//     passed, on the observer's clock, since a renewal that this node had sent before. So a
//     lease that is valid at a moment proves that there was no certificate before it. The
//     clocks of two nodes may differ as they like; their rates by less than a tenth.
//  3. Nothing is run twice: a turn whose ID has begun in this ownership is refused, and so
//     is one that was meant for another epoch ([EpochError]).
//  4. What is lost is told: a turn that has begun and whose answer may not leave ends
//     with [ErrLost], one that was refused has not begun.
//  5. An epoch is never used twice for a key, also when the key was forgotten meanwhile. See
//     below.
//  6. Nobody is declared dead because the directory is away: a node counts the silence of
//     others only while its own renewals are acknowledged in time.
//
// # What is forgotten
//
// A key that nobody owns leaves a record of some 250 bytes, which has its epoch. It is
// removed once it has stood so for [Options].Forget: by the node with the least ID of those
// that are up, or by several, as each step is a compare-and-swap. The order of the steps
// makes it safe:
//
//   - The floor is raised to the epochs of the claims that are to go, by a swap.
//   - Then time passes, until no node relies on what it had learnt of the floor before: each
//     learns it by a swap of the same record, relies on that for 4 TTL from before the swap
//     was sent, and has written into the record for how long that is; the one that removes
//     waits a quarter longer than the longest of these times, so that clocks whose rates
//     differ by less than a tenth do not matter.
//   - Then the claims are removed, each by its revision, so that one which somebody has
//     meanwhile taken stays.
//
// A claim is made with an epoch after the floor, and its owner looks at the floor again
// once the swap is acknowledged: when the floor is not below the epoch then, nobody has
// owned the key in it, and the claim is swapped to a later one. Proof: if the floor as it is
// known at a moment after the swap is below the epoch, each claim of the key that was removed
// before that moment had an earlier epoch, for a removal that had needed a higher floor was
// still to wait for this node; and the claims since follow one another by swaps. That holds
// for a swap that arrives long after it was sent, too, and for one that makes a removed claim
// again in an old epoch: whoever takes that up goes beyond the floor. In the strict mode the
// floor is learnt by a swap after each claim, and clocks have no part.
//
// What is forgotten with the record is that a turn may have begun in those epochs
// ([Ownership].Used) and the last IDs of the strict mode: who repeats a turn without an
// epoch so long after the key was released is not known again. Who names an epoch is: all
// before [Ownership].First are over.
//
// # What is kept
//
// An owner may have written down what a key has, where other nodes find it: in a record of a
// name that was never used before. The claim says which record counts ([Ownership.Keep],
// [Ownership.Kept]), and goes on saying so whoever claims the key, until an owner has that
// again ([Ownership.Take]) or drops it ([Ownership.Drop]). All three are swaps of the claim by
// its owner, so
//
//   - at most one owner takes a record, and it has the key in an epoch that nobody else has;
//   - an owner of an earlier epoch can neither take nor replace what a later one goes by,
//     however late it comes: its swap conflicts, and nobody asks for the record that it wrote;
//   - what is kept is no older than the last answer. A swap of these that had no answer is made
//     up for by another one before a turn begins or an answer leaves.
//
// A record that an owner has taken is over, also when that owner dies: the next one begins with
// nothing, and learns when the key was last kept ([Past].Before), to say so. To have it go on from
// there would break the last of these: what it answers would be of before answers that it has
// given, and whoever goes by what the key knows, such as how far a piece of work has come, would
// do again what was done.
//
// A claim is not forgotten while its record is there.
//
// # Repetitions
//
// Whoever repeats a turn at another node, because the first attempt got no answer, sends
// the epoch of the first ([Call].Epoch), or uses the strict mode: without either, the new
// owner cannot know that the turn was begun before.
//
// Where an ownership has come to its end in order ([Ownership.End]), the next owner learns
// who knows what was begun in it ([Ownership.Past]), and may ask there.
//
// # Strict mode
//
// With [Options].Strict, a swap of the claim stands in place of each of the two looks at
// the lease: one when a turn begins, one before its answer leaves. Then no clock has a
// part in guarantees 1 to 3, whatever a machine that was paused believes, and the claim
// holds the last IDs of turns, so that a later owner refuses them too. It costs two round
// trips to the directory for each turn.
//
// # What it does not do
//
// What the code of a turn has done elsewhere before its answer was lost cannot be undone;
// the epoch is a fencing token, by which whoever is written to can refuse an older owner.
// Records of nodes that are over stay in the directory, some 250 bytes for each life: to
// remove one is safe once the silence of a missing record can be waited for, which costs a
// claim one TTL more, and once whoever watches nodes is told of what goes.
package fleet
