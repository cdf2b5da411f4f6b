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
	// An error ends the sink, unless its [Lane] says how to start another one;
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
	// a consumer that stopped reading. It is no failure.
	ErrConsumerGone = errors.New("the consumer has left")
	// ErrClosed: the hub is not part of a running tree, or the call was closed.
	ErrClosed = errors.New("the sinks are closed")
	// errAbandoned: a sink's call did not return, and its actor was given up.
	errAbandoned = errors.New("the sink does not return")
)

// Lane says how a sink is connected to a call. The zero value of each field is
// its default. A Lane is a [Sink] itself, so it can be given to [Hub.Open] in
// the place of one.
type Lane struct {
	Sink
	// Name is what the sink's actor is called, together with a number. "":
	// "sink".
	Name string
	// Lossy lets the lane drop and count events instead of holding the call
	// back.
	Lossy bool
	// Credit is how many bytes of events may be on their way to the sink. 0:
	// 1 MiB.
	Credit int64
	// Again makes a sink that goes on after the first has failed, once. nil: the
	// first failure ends the lane.
	Again func() Sink
	// OnGone is called once when the lane ends before its call, with the reason.
	// It is called from an actor of the hub and must not block. nil: nobody
	// wants to know.
	OnGone func(error)
}

// LaneReport says how a lane fared.
type LaneReport struct {
	// Name is the lane's; "result" for the result sink.
	Name string
	// Dropped counts the events that a lossy lane had no credit for, or any lane
	// after Hurry, Lost those that a sink failed on or that came after its end.
	Dropped, Lost uint64
	// Err is why the lane ended before its call, nil if it did not.
	Err error
}

// DefaultCredit is how many bytes of events may be on their way in one lane.
const DefaultCredit = 1 << 20
