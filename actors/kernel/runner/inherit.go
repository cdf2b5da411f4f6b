package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/custody"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/forkserver"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/messages"
)

// heir is a session of an earlier host that has not been started here.
type heir struct {
	from  *custody.Custody
	note  estate.Note
	files []*os.File
	last  *estate.Running // nil: it has had no call
}

// close closes the descriptors of one that is not started.
func (h *heir) close() {
	for _, f := range h.files {
		_ = f.Close()
	}
	h.files = nil
}

// whose is about the sessions of earlier hosts that are gone.
const (
	goneWithCustodian = "the process that kept the session after the end of an earlier host has ended"
	goneMeanwhile     = "the session's process has ended after its host had"
)

// inherit takes over what earlier hosts have left.
func (k *keeper) inherit(ctx context.Context) ([]kernel.Inherited, error) {
	found, err := custody.Scan(ctx, k.o.Dir)
	if err != nil {
		return nil, err
	}
	var all []kernel.Inherited
	for _, s := range found {
		switch s.State {
		case custody.Waiting:
			c, err := custody.Take(ctx, k.options(""), s.ID)
			switch {
			case err == nil:
				all = append(all, k.take(ctx, c)...)
				if ctx.Err() != nil {
					return all, context.Cause(ctx)
				}
			case errors.Is(err, custody.ErrGone):
				all = append(all, k.bury(s)...)
			case ctx.Err() != nil:
				return all, context.Cause(ctx)
			case !errors.Is(err, custody.ErrUsed): // another host was earlier
				k.o.Warn("sessions that an earlier host has left were not taken over", "err", err)
			}
		case custody.Gone:
			all = append(all, k.bury(s)...)
		case custody.Refused:
			k.o.Warn("sessions that an earlier host has left were not taken over", "err", s.Err)
		case custody.Used: // by a host that lives
		}
	}
	return all, nil
}

// take takes over all that one custodian keeps. When ctx ends before that is done, all of it is
// left to who tries again.
func (k *keeper) take(ctx context.Context, c *custody.Custody) []kernel.Inherited {
	var all []kernel.Inherited
	count := 0
	names := c.Names()
	found := k.fetchAll(ctx, c, names)
	over := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), custodyWait)
	defer cancel()
	if over {
		for _, f := range found {
			if f.heir != nil {
				f.heir.close()
			}
		}
		if err := c.Leave(ctx); err != nil {
			k.o.Warn("sessions that an earlier host has left were not left again", "err", err)
		}
		return nil
	}
	for n, f := range found {
		name, h := names[n], f.heir
		if f.err != nil {
			k.o.Warn("a session that an earlier host has left was not taken over", "session", name, "err", f.err)
			_ = c.Drop(ctx, name) // it ends, now or with its custodian
			if key, ok := messages.ParseSessionKey(name); ok {
				all = append(all, k.missing(key, "what an earlier host has noted of the session is of no use: "+f.err.Error(), nil))
			}
			continue
		}
		one := kernel.Inherited{Key: h.note.Key, Owners: h.note.Owners}
		if h.last != nil {
			one.Call, one.Stop, one.Owners = &h.last.Exec, h.last.Stop, withOwner(one.Owners, h.last.Exec.Owner)
			if info, err := os.Stat(filepath.Join(c.Dir(), h.note.Log)); err == nil {
				one.Seen = info.ModTime()
			}
		}
		all = append(all, one)
		count++
		k.mu.Lock()
		k.heirs[name] = h
		k.mu.Unlock()
	}
	if count == 0 {
		_ = c.End(ctx) // nothing is there any more
		return all
	}
	k.mu.Lock()
	k.earlier[c] = count
	k.mu.Unlock()
	k.ends.Go(func() { k.watch(c) }) // ends with the custody, which close ends
	return all
}

// fetched is what has come of the attempt to take one session over.
type fetched struct {
	heir *heir
	err  error
}

// fetchers is how many sessions are taken over at once: while the custodian hands one over,
// what an earlier host has written down of others is read.
const fetchers = 4

// fetchAll takes over sessions, and returns what has come of each.
func (k *keeper) fetchAll(ctx context.Context, c *custody.Custody, names []string) []fetched {
	all := make([]fetched, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(fetchers, len(names)) {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(names); n = int(next.Add(1)) - 1 {
				all[n].heir, all[n].err = k.fetch(ctx, c, names[n])
			}
		})
	}
	wg.Wait()
	return all
}

// fetch takes over one session.
func (k *keeper) fetch(ctx context.Context, c *custody.Custody, name string) (_ *heir, err error) {
	item, err := c.Hand(ctx, name)
	if err != nil {
		return nil, err
	}
	h := &heir{from: c, files: item.Files}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.note, err = estate.ParseNote(item.Note); err != nil {
		return nil, err
	}
	if h.note.Key.ID() != name {
		return nil, fmt.Errorf("it is noted as the session %s", h.note.Key)
	}
	h.last, err = estate.Read(c.Dir(), h.note.Log, h.note.Seal, nil)
	return h, err
}

// bury notes what was lost with a custodian.
func (k *keeper) bury(s custody.Standing) []kernel.Inherited {
	claims := map[string]estate.Claim{}
	for _, c := range estate.Claims(filepath.Join(k.o.Dir, s.ID)) {
		claims[c.Key.ID()] = c
	}
	var all []kernel.Inherited
	for _, name := range s.Names {
		key, ok := messages.ParseSessionKey(name)
		if !ok {
			continue
		}
		var call *messages.Execute
		if c, is := claims[name]; is {
			call = &messages.Execute{ID: c.ID, Key: key}
		}
		all = append(all, k.missing(key, goneWithCustodian, call))
	}
	if len(all) > 0 {
		k.o.Warn("the process that kept the sessions of an earlier host has ended: they are lost", "sessions", len(all))
	}
	if err := custody.Bury(k.o.Dir, s.ID); err != nil && !errors.Is(err, custody.ErrUsed) {
		k.o.Warn("remove what is left of lost sessions", "err", err)
	}
	return all
}

// missing notes that a session is not there any more, for its next start.
func (k *keeper) missing(key messages.SessionKey, why string, call *messages.Execute) kernel.Inherited {
	k.mu.Lock()
	k.lost[key.ID()] = why
	k.mu.Unlock()
	return kernel.Inherited{Key: key, Call: call, Lost: why}
}

// adopt goes on with a session of an earlier host; nil: it has ended, which the next
// start tells.
func (s *Server) adopt(ctx context.Context, key messages.SessionKey, tracer *ipctrace.File) (*Interpreter, error) {
	k := s.keep
	h := k.claim(key)
	if h == nil {
		return nil, nil //nolint:nilnil // nothing waits
	}
	i, err := s.goOn(ctx, h, tracer)
	if err == nil {
		k.mu.Lock()
		k.sessions[i.kept().name] = i
		k.mu.Unlock()
		if k.leaving.Load() { // it was not among those that leave has seen
			i.kept().log.Freeze()
		}
		return i, nil
	}
	forGood := kernel.EndsForGood(ctx)
	switch {
	case i == nil:
		_ = h.from.Drop(ctx, key.ID())
		k.release(h.from)
	case ctx.Err() != nil && k.leaving.Load() && !forGood: // the next host goes on with it
		discard(i)
		return nil, err
	default:
		i.kept().drop()
		discard(i)
	}
	why := "the session of an earlier host could not be gone on with: " + err.Error()
	if _, ended := errors.AsType[*forkserver.LostError](err); ended {
		why = goneMeanwhile
	}
	if !forGood {
		k.mu.Lock()
		k.lost[key.ID()] = why
		k.mu.Unlock()
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return nil, nil //nolint:nilnil // as above
}

// goOn makes the interpreter of a session of an earlier host. It is returned with an error
// when it has to be ended.
func (s *Server) goOn(ctx context.Context, h *heir, tracer *ipctrace.File) (*Interpreter, error) {
	n := h.note
	child, err := forkserver.Adopt(n.Process, h.files)
	if err != nil {
		return nil, err
	}
	i := newInterpreter(child, tracer, nil, []byte(n.Mark))
	i.lines = ndjson.NewReader(child.HeldReader(i.mark), ndjson.MaxFrame).Mark(i.mark)
	i.copies, i.limits = &s.copies, limits(s.o.Limits)
	i.info = kernel.Info{ID: fmt.Sprint(n.Process.PID), PID: n.Process.PID, Python: n.Python, Kept: true}
	i.setApart(false)
	i.info.News = (*kernel.News)(n.News)
	if h.last != nil {
		i.info.News = (*kernel.News)(h.last.News)
	}
	n.Generation++
	i.cells = uint64(n.Generation) << 32 // no cell of an earlier host has such a number
	k := &kept{keeper: s.keep, from: h.from, name: n.Key.ID(), note: n, last: h.last}
	i.held.Store(k)
	if h.last == nil {
		k.log, err = estate.Create(h.from.Dir(), n.Log, n.Seal)
	} else {
		k.log, err = estate.Reopen(h.from.Dir(), n.Log, n.Seal, h.last)
	}
	if err != nil {
		k.log = &estate.Log{}
		return i, err
	}
	k.mu.Lock()
	k.tell()
	k.mu.Unlock()
	if h.last == nil || !h.last.Begun {
		err = i.settle(ctx)
	} else {
		i.unsettled = true
	}
	return i, err
}

// typeProbe is that of a request which no session knows: it is refused by its number, whatever
// the version of the session.
const typeProbe = "probe"

// probe asks a session for a sign on Main: the refusal of a request with a number that no
// other host has used. The answer to a probe of an earlier one may still be there. An empty
// line before it ends half a request that an earlier host was writing. An error says that it
// could not be written, which the end of a context does as well as that of the session.
func (i *Interpreter) probe() error {
	line, err := ndjson.AppendRequest([]byte{'\n'}, ndjson.Request{Type: typeProbe, ID: i.probeID()})
	if err != nil {
		return err
	}
	i.probes++
	i.unsettled = false
	_, err = i.child.Main.Write(line)
	return err
}

// write writes a request to Main. The first one to a session whose cell ran on from an
// earlier host comes after a probe: what that host asked in vain while the cell ran is refused
// only now, and the refusal must not be taken for that of this request.
func (i *Interpreter) write(line []byte) error {
	if i.unsettled {
		if err := i.probe(); err != nil {
			return err
		}
	}
	i.trace(sent, "main", line)
	_, err := i.child.Main.Write(line)
	return err
}

// unwritten is the error of a request that could not be written, whole or in part: the call is
// over, and the session may go on with another host, or the session has ended.
func (i *Interpreter) unwritten(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return i.gone(err)
}

// probeID is the number of this host's probes: that before its first cell.
func (i *Interpreter) probeID() uint64 { return uint64(i.kept().generation()) << 32 }

// sign is what a frame says of a probe.
type sign int

const (
	none  sign = iota // nothing
	stray             // it refuses what came before the probe: half a request, or an empty line
	given             // the session has come to it
)

// signOf returns what a frame says of a probe that was made.
func (i *Interpreter) signOf(f ndjson.Frame) sign {
	switch {
	case i.probes == 0 || f.Type != ndjson.TypeProtocolError:
		return none
	case f.ID == 0:
		return stray
	case f.ID == i.probeID():
		i.probes--
		return given
	}
	return none
}

// settle leaves out what a session has said of cells that have ended, and returns when
// nothing of it is left.
func (i *Interpreter) settle(ctx context.Context) (err error) {
	stop := i.until(ctx)
	defer func() {
		stop(err)
		i.lines.Release()
	}()
	if err := i.probe(); err != nil {
		return i.unwritten(ctx, err)
	}
	if err := i.child.Main.SetReadDeadline(time.Now().Add(look)); err != nil {
		return i.gone(err)
	}
	for {
		line, err := i.next(ctx, func() {})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return i.gone(err)
		}
		if f, err := ndjson.ParseFrame(bytes.TrimPrefix(line, i.mark)); err == nil && i.signOf(f) == given {
			return nil
		}
	}
}
