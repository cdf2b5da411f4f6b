package sinks

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/messages"
)

// Sink takes the events of one call. Its methods are called one at a time, from
// an actor of the hub; a sink of its own that a host brings should pass the
// suite in package sinktest.
type Sink interface {
	// Consume takes one event, in order. It may block: that is what holds the
	// producer back. It must not change what the event points to.
	//
	// It must return soon when ctx ends, which is when the tree shuts down. An
	// error then means that the event was not taken: it may be offered once more,
	// with a ctx that leaves a last few seconds.
	//
	// An error ends the sink, unless its [Subscription] says how to start another one;
	// the event counts as lost. [ErrConsumerGone] ends it for good.
	Consume(ctx context.Context, e messages.Event) error
	// Flush makes what was consumed visible to whoever reads the other side. It
	// is called when the call has ended, and may be called more than once.
	Flush(ctx context.Context) error
	// Close is the last call, once for each sink that was given to the hub. It
	// is not called when the sink panicked.
	Close() error
}

var (
	// ErrConsumerGone: whoever the sink writes to has left, as a closed pipe or
	// a consumer that stopped reading. It is not a failure.
	ErrConsumerGone = errors.New("the consumer has left")
	// ErrClosed: the hub is not part of a running tree, or the call was closed.
	ErrClosed = errors.New("the sinks are closed")
	// errAbandoned: a sink's call did not return, and its actor was given up.
	errAbandoned = errors.New("the sink does not return")
)

// Subscription says how a sink is connected to a call. The zero value of each field is
// its default. A Subscription is a [Sink] itself, so it can be given to [Hub.Open] in
// the place of one.
type Subscription struct {
	Sink
	// Name is what the sink's actor is called, together with a number. "":
	// "sink".
	Name string
	// Lossy lets the subscription drop and count events instead of holding the call
	// back.
	Lossy bool
	// Credit is how many bytes of events may be on their way to the sink. 0:
	// 1 MiB.
	Credit int64
	// Again makes a sink that goes on after the first has failed, once. nil: the
	// first failure ends the subscription.
	Again func() Sink
	// OnGone is called once when the subscription ends before its call, with the
	// reason. It is called from an actor of the hub and must not block. nil: it is
	// not called.
	OnGone func(error)
}

// SinkReport says how one sink of a call fared.
type SinkReport struct {
	// Name is that of the subscription; "result" for the result sink.
	Name string
	// Dropped counts the events that there was no credit for: in a lossy
	// subscription, or in any after Hurry, Lost those that a sink failed on or that
	// came after its end.
	Dropped, Lost uint64
	// Err is why the subscription ended before its call, nil if it did not.
	Err error
}

// DefaultCredit is how many bytes of events may be on their way in one subscription.
const DefaultCredit = 1 << 20
