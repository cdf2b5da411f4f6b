// Package estate is what a host writes down of sessions that outlive it, for the next
// host: which session a process is, and how far its call came.
//
// # Guarantees
//
//   - A [Note] says which session key has which process, and where its log is. It holds
//     the key of the log's seal, and is for the one who keeps it alone (package custody),
//     who shows it to hosts that prove themselves.
//   - A [Log] says what a running call is, which cell runs under which number or name, every event
//     that was handed on, and what of each frame of the session was seen, so that the next
//     host hands on the next event, and none a second time. It is written before an event is
//     handed on, and with one write(2) for each thing, so that a host that is killed
//     at any instant has written it whole or, at the end of the file, in part. A part counts
//     as not written.
//   - A log is for its user alone (0600). Each of its lines is sealed, in the order in
//     which they stand: a log in which something was changed, left out or put in is refused
//     with a [*RefusedError]. That lines are missing at its end cannot be seen here; the frames
//     of the session are numbered, and tell.
//   - A log holds [MaxLog] bytes, and says so when events were left out.
//   - Between Cell and what it says there is no host: once a log is frozen, neither a call nor
//     a cell begins with this host ([ErrFrozen]), so that none runs twice.
//   - It holds no values of environments: a call that has any is not begun on a further cell
//     by a later host.
//
// # The life of a log
//
//	               Begin              Cell, Output, Emitted, Ended ...
//	no call ───────────────▶ a call ──────────────────────────────────▶ a call
//	   ▲                       │  ▲                                        │
//	   │                       │  └─────────────────── Begin ──────────────┘
//	[Create]                   └── Freeze: as it is, for the next host ([Read], [Reopen])
//
// The last call of a session stays in its log until the next one begins: whether its result
// has reached the one who asked, a host that was killed cannot tell.
//
// The methods of a Log may be called from any goroutine.
package estate
