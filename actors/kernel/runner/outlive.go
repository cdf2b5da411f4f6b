package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// Freeze copies the session, also when threads or tasks run in it: the copy is written
// down, and never goes on.
func (i *Interpreter) Freeze(ctx context.Context) (kernel.Frozen, error) {
	if i.copies == nil {
		return nil, &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: "it belongs to no server"}
	}
	made, err := i.fork(ctx, ndjson.Request{Type: ndjson.TypeFork, N: 1, Force: true})
	if refused, ok := errors.AsType[*messages.ForkRefused](err); ok {
		return nil, &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: refused.Problem}
	}
	if err != nil {
		return nil, err
	}
	return &frozen{made[0]}, nil
}

// frozen is a copy of a session that is written down.
type frozen struct{ i *Interpreter }

// Write has the copy write itself to a file.
func (f *frozen) Write(ctx context.Context, to *os.File, how kernel.Writing) (messages.RawJSON, error) {
	_, err := to.Seek(0, io.SeekStart)
	if err == nil {
		err = to.Truncate(0)
	}
	if err != nil {
		return nil, err
	}
	frame, err := f.i.handOver(ctx, ndjson.Request{Type: ndjson.TypeFreeze, Names: how.Without, Apart: how.Apart, Whole: how.Whole}, to)
	if err != nil {
		return nil, fmt.Errorf("write a session down: %w", err)
	}
	return frame.Args, nil
}

// Close ends the copy.
func (f *frozen) Close(ctx context.Context) error {
	f.i.cutOff() // it has nothing to end in order
	return f.i.Close(ctx)
}

// Thaw has the session take over what a file holds.
func (i *Interpreter) Thaw(ctx context.Context, from *os.File, image messages.RawJSON) (kernel.Thawed, error) {
	var t kernel.Thawed
	frame, err := i.handOver(ctx, ndjson.Request{Type: ndjson.TypeThaw, Args: image}, from)
	if ctx.Err() != nil { // nothing of half a session is worth the time that an orderly end takes
		_ = i.child.Stop(context.WithoutCancel(ctx), process.StopOptions{Grace: -1}) // Close tries again
	}
	if err != nil {
		return t, fmt.Errorf("read a session: %w", err)
	}
	if err := json.Unmarshal(frame.Args, &t); err != nil {
		return t, fmt.Errorf("read a session: %w", err)
	}
	return t, nil
}

// handOver makes a request that goes with a file, and returns its answer. What is printed
// meanwhile is left out: no cell runs that it could belong to.
func (i *Interpreter) handOver(ctx context.Context, r ndjson.Request, f *os.File) (_ ndjson.Frame, err error) {
	line, err := ndjson.AppendRequest(nil, r)
	if err != nil {
		return ndjson.Frame{}, err
	}
	stop := i.until(ctx)
	defer func() {
		stop(err)
		i.lines.Release()
	}()
	if err := i.write(line); err != nil {
		return ndjson.Frame{}, i.unwritten(ctx, err)
	}
	for {
		frame, err := i.answer(ctx)
		if err != nil {
			return frame, err
		}
		switch frame.Type {
		case ndjson.TypeForking:
			if err := i.child.HandOver(f); err != nil {
				i.cutOff() // it waits for a file that will not come
				return frame, err
			}
		case ndjson.TypeFrozen, ndjson.TypeThawed:
			return frame, nil
		case ndjson.TypeRefused:
			return frame, &messages.HibernateRefused{Reason: refusedAs(frame.Name), Problem: frame.Message}
		case ndjson.TypeProtocolError:
			return frame, &messages.HibernateRefused{Reason: messages.HibernateFailed, Problem: frame.Message}
		}
	}
}

// refusedAs is why a session does not take over what another one had.
func refusedAs(name string) messages.HibernateReason {
	if name == "unlike" {
		return messages.HibernateUnsupported
	}
	return messages.HibernateFailed
}

// Freezes reports whether sessions can be kept on disk: where they can be copied.
func (p *provided) Freezes() bool { return freezes }

var (
	_ kernel.Freezer  = (*Interpreter)(nil)
	_ kernel.Freezing = (*provided)(nil)
)
