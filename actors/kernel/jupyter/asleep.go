package jupyter

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/messages"
)

// freezes says whether kernels can be kept on disk on this system: they reach the files of the
// host's by its own descriptors.
const freezes = runtime.GOOS == "linux"

// givenUp is what chance a kernel has to stop writing or reading once it is interrupted.
var givenUp = opportunity.Budget{Opportunity: 10 * time.Second}

const toldExpression = "told"

// Freezes reports whether kernels can be kept on disk.
func (p *provided) Freezes() bool { return freezes && len(p.remotes) == 0 && p.Server.o.URL == "" }

// Freeze makes the kernel ready to write itself down. It is not copied: nothing else runs in
// it meanwhile.
func (i *Interpreter) Freeze(ctx context.Context) (kernel.Frozen, error) {
	if err := i.bring(ctx); err != nil {
		return nil, err
	}
	return frozen{i}, nil
}

// bring puts what writes and reads memory into the kernel.
func (i *Interpreter) bring(ctx context.Context) error {
	if !i.python || !i.server.Local || !freezes {
		return &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: "only kernels of Python on this machine can be kept on disk"}
	}
	code, err := pysrc.AsleepCode()
	if err != nil {
		return err
	}
	if _, err := i.silently(ctx, code); err != nil {
		return fmt.Errorf("prepare the kernel to be kept on disk: %w", err)
	}
	return nil
}

// frozen is a kernel that is written down.
type frozen struct{ i *Interpreter }

// Write has the kernel write itself to a file.
func (f frozen) Write(ctx context.Context, to *os.File, how kernel.Writing) (messages.RawJSON, error) {
	_, err := to.Seek(0, io.SeekStart)
	if err == nil {
		err = to.Truncate(0)
	}
	if err != nil {
		return nil, fmt.Errorf("write a session down: %w", err)
	}
	told, err := f.i.memory(ctx, pysrc.FreezeCode(pathOf(to), how.Without, how.Apart, how.Whole))
	switch {
	case err != nil:
		return nil, fmt.Errorf("write a session down: %w", err)
	case len(told.Image) == 0:
		return nil, errors.New("write a session down: the kernel does not say what it wrote")
	}
	return messages.RawJSON(told.Image), nil
}

// Close does nothing: the kernel goes on.
func (frozen) Close(context.Context) error { return nil }

// Thaw has the kernel take over what a file holds.
func (i *Interpreter) Thaw(ctx context.Context, from *os.File, image messages.RawJSON) (kernel.Thawed, error) {
	var t kernel.Thawed
	if err := i.bring(ctx); err != nil {
		return t, err
	}
	told, err := i.memory(ctx, pysrc.ThawCode(pathOf(from), string(image)))
	switch {
	case err != nil:
		return t, fmt.Errorf("read a session: %w", err)
	case told.Unlike != "":
		return t, &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: told.Unlike}
	case told.Failed != "":
		return t, &messages.HibernateRefused{Reason: messages.HibernateFailed, Problem: told.Failed}
	}
	if err := json.Unmarshal(told.Thawed, &t); err != nil {
		return t, fmt.Errorf("read a session: %w", err)
	}
	return t, nil
}

// pathOf is where a kernel of this machine finds a file that the host has open.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

// told is what a kernel says of its memory.
type told struct {
	Image, Thawed  json.RawMessage
	Unlike, Failed string
}

// memory runs code of ours that writes or reads the kernel's memory. When ctx ends it is
// interrupted; a kernel that does not heed that is ended.
func (i *Interpreter) memory(ctx context.Context, code string) (told, error) {
	life, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		late, done := opportunity.Within(life, givenUp, i.Subject())
		defer done()
		defer context.AfterFunc(late, give)()
		_ = i.kernel.Interrupt(life) // else it is ended
		close(interrupted)
		<-late.Done()
	})
	reply, err := i.kernel.Execute(life, jupyter.ExecuteRequest{Code: code, Silent: true, UserExpressions: map[string]string{toldExpression: pysrc.AsleepTold}}, nil)
	if !stop() {
		<-interrupted // that is not for the next cell
	}
	switch {
	case life.Err() != nil:
		i.Kill()
		return told{}, context.Cause(ctx)
	case ctx.Err() != nil:
		return told{}, context.Cause(ctx)
	case err != nil:
		return told{}, i.lost(err)
	case reply.Error != nil:
		return told{}, fmt.Errorf("%s: %s", reply.Error.Name, reply.Error.Message)
	}
	var t told
	text, _ := stringExpression(reply, toldExpression)
	data, err := hex.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, fmt.Errorf("what the kernel says of its memory cannot be read: %w", err)
	}
	return t, nil
}

var (
	_ kernel.Freezer  = (*Interpreter)(nil)
	_ kernel.Freezing = (*provided)(nil)
)
