package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// Hold ends the streams of executions and changes, and holds back how executions end: what
// nobody has been told yet can be told by another server.
func (a *API) Hold() { a.handing.Hold() }

// Release goes on after Hold.
func (a *API) Release() { a.handing.Release() }

// Leaving says, after Hold, that the sessions are about to be left to the next server. What
// has ended by now has ended here. There is no way back but another API, of what Export wrote.
// It returns which sessions are pinned, for Export.
func (a *API) Leaving(ctx context.Context) (pins []messages.SessionKey, err error) {
	sessions, err := a.o.Host.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if s.Pinned {
			pins = append(pins, s.Key)
		}
	}
	a.handing.Leave()
	return pins, nil
}

// Bound says what of this server no other one can go on with: what is there for as long as
// somebody wants it (lasting), and what ends by itself (passing).
func (a *API) Bound() (lasting, passing []string) {
	if n := len(a.o.Host.Workspaces().List(workspace.Filter{})); n > 0 {
		lasting = append(lasting, several(n, "workspace"))
	}
	if n := a.kept.count(); n > 0 {
		lasting = append(lasting, several(n, "checkpoint"))
	}
	a.mu.Lock()
	order := slices.Clone(a.order)
	a.mu.Unlock()
	for _, x := range order {
		if why := x.bound(); why != "" && !x.hasEnded() {
			passing = append(passing, fmt.Sprintf("the execution %s: %s", x.info.ID, why))
		}
	}
	return lasting, passing
}

// several writes a number with its noun.
func several(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// bound says why an execution has to end where it began; "": it has not.
func (x *execution) bound() string {
	if x.info.Kind == client.KindNotebook {
		return "it runs a notebook"
	}
	e, known := x.request()
	switch {
	case !known:
		return ""
	case e.Mode == messages.ModePerCall:
		return "its kernel is for this call alone"
	case len(e.Env)+len(e.CallEnv) > 0 && len(e.Cells) > 1:
		return "it has variables of its own, which are not written down"
	}
	return ""
}

// count is how many checkpoints there are.
func (k *checkpoints) count() int {
	k.prune()
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

// ExportVersion is that of what Export writes. A server that does not know it must not be
// left to.
const ExportVersion = 1

// leftServer is the first line of what one server leaves to the next. Then come the
// executions: a line for each, and one for each of its events.
type leftServer struct {
	Version    int                   `json:"version"`
	Changes    uint64                `json:"changes"` // how many there were
	Pins       []messages.SessionKey `json:"pins,omitempty"`
	Executions int                   `json:"executions"`
}

// leftExecution is one of them.
type leftExecution struct {
	Info   client.Execution `json:"info"`
	Asked  string           `json:"asked,omitempty"`
	Code   string           `json:"code,omitempty"`
	Told   bool             `json:"told,omitempty"`
	Events uint64           `json:"events"`
	// Ended says that it has ended, with Info.Result. Else it went on until the sessions were
	// left: Info.Result is what it came to here, which counts when the next server knows
	// nothing of it, unless it had reached no kernel: then it is made anew, if it is Wanted still.
	Ended  bool `json:"ended,omitempty"`
	Wanted bool `json:"wanted,omitempty"`
}

// mostLine bounds a line, in bytes: a result with its pictures, or a frame of a session.
const mostLine = 256 << 20

// Export writes down, after Leaving and once the host has left, what the next server needs
// to go on with the executions. It has codes, output and variables of calls in it: w is for
// this user alone.
func (a *API) Export(ctx context.Context, w io.Writer, pins []messages.SessionKey) error {
	a.mu.Lock()
	a.over = true
	order := slices.Clone(a.order)
	a.mu.Unlock()
	order = slices.DeleteFunc(order, func(x *execution) bool {
		select {
		case <-x.ended:
		case <-x.returned:
		case <-ctx.Done():
		}
		select {
		case <-x.settled:
			return x.refused != nil
		default:
			return true // who asked for it has gone before it had a place
		}
	})
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("wait for the calls to be left: %w", err)
	}
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false) // it would make six bytes of one
	err := lines.Encode(leftServer{Version: ExportVersion, Changes: a.changes.newest(), Pins: pins, Executions: len(order)})
	for _, x := range order {
		if err == nil {
			err = x.export(lines, out)
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write the executions down: %w", err)
	}
	return nil
}

func (x *execution) export(lines *json.Encoder, out io.Writer) error {
	x.mu.Lock()
	one := leftExecution{Info: x.info, Asked: x.asked, Code: x.code, Told: x.told.Load(), Ended: x.info.State == client.Ended}
	x.mu.Unlock()
	if !one.Ended && x.came != nil {
		one.Info.Result, one.Wanted = x.came, x.wanted
	}
	one.Events, _, _ = x.log.Size()
	if err := lines.Encode(one); err != nil {
		return err
	}
	for n := uint64(0); n < one.Events; {
		entries, _, err := x.log.Read(n, batch)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if n++; n > one.Events {
				break
			}
			if _, err := out.Write(e); err != nil {
				return err
			}
			if _, err := out.Write([]byte{'\n'}); err != nil {
				return err
			}
		}
	}
	return nil
}
