// Package blobstore is a [store.Store] in a bucket of gocloud.dev/blob: S3, Google Cloud
// Storage, Azure, and what speaks as they do. The program imports the driver that it wants:
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	bucket, err := blob.OpenBucket(ctx, "s3://mine?region=eu-west-1&prefix=sessions/")
//	kept, err := blobstore.Open(ctx, bucket, blobstore.Options{Key: key})
//	host, err := coppice.Start(ctx, coppice.Options{Hibernate: hibernate.Lossy, Store: kept})
//
// # What it promises
//
//   - A record is there as a whole or not at all, whatever ends the program that writes it:
//     its buffers are in the bucket before it is, and it is one object, written at once.
//   - Records are sealed as those of a [store.Folder] are, and the seal also binds where
//     a record stands: an older one that somebody copied to a newer place is refused.
//   - A record is open once at a time, over all hosts: who has it open renews a lease,
//     and [Store.Delete] fails at whoever has lost theirs. So of two that restore it at
//     once, only one gets to the end.
//   - A buffer that several records of one key hold is in the bucket once, unless two hosts
//     wrote it in the same moment. One that is there is read before a record relies on it.
//   - What a record replaced is never handed out for it. Each record of a name has the number
//     after the last one's, and only one host can write a number.
//   - A write whose answer was lost is looked for before it is called one that failed.
//
// All of that stands on two things that the bucket does: it refuses to write an object that
// is there when it is asked to, of two writers at once, too; and it reads what was written
// last. S3, GCS and Azure do. [Open] tries the first and refuses a bucket that writes
// all the same.
//
// # What cannot be promised over object storage
//
//   - A lease ends by the clock: nothing in a bucket ends with the program that made it. A
//     record that a killed program had open is had again Lease after someone has first
//     found it busy. A host that stood still for that long has lost its own; it
//     finds out at the next write to the bucket and not before. Where a frozen host must not
//     do anything any more, the sessions need a fleet's claims besides.
//   - A list may lag behind. A record that was just replaced is found all the same; one that
//     is the first of its name may be missed, as if it weren't there, and [Store.List] may
//     be behind. The quota is as exact as the list, and two hosts that write at once
//     may exceed it by what they write.
//   - When the bucket neither confirms a write nor lets it be looked for, the error says
//     that it is not known whether it was done.
//   - There is no transaction. What was replaced or deleted, and buffers that no record
//     needs, stay for up to two days, and are swept by hosts that open the store or write
//     into it. They do not count for the quota. A program that was frozen for half a day
//     between two requests gives up; frozen within one for a day, it may take a
//     buffer or a record with it: that is then refused, or gone, never another one's.
//   - Who can write to the bucket can delete from it, and so bring an older state back. They
//     cannot make a record, nor change one.
//   - Records are not encrypted here; buckets encrypt on their side.
//   - fileblob looks whether a file is there and then renames: two writers in the same
//     moment both succeed; and without metadata=skip it shows half of what it writes of an
//     object besides. It and memblob are for tests; for a folder there is [store.Folder].
//
// # Life of a record
//
//	none ──Put──▶ n1 ──Put──▶ n2 ──Delete──▶ n3, which says none ──a day──▶ none
//	              │ Get: a lease, renewed until Close; Lease without renewal, and it is another's
//
// A record that is open has one goroutine, which renews its lease and ends with Close. Any
// goroutine may call a [Store]. The package is a module of its own, so that gocloud.dev is
// linked only by programs that use it.
package blobstore
