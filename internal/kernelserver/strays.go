package kernelserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Stray is the private directory of a gateway whose host and keeper are gone,
// with the processes that are left of it. It is proved to be ours: the directory
// belongs to this user and names its owner by pid and start time, and the command
// line of each process begins with a script in it.
type Stray struct {
	Dir string
	// Gateway is the gateway itself when it lives, the zero value when it does not.
	Gateway process.Identity
	// Kernels are the kernels that are left.
	Kernels []process.Identity
	// Name is that of a gateway that hosts share, "" of another.
	Name string
}

// Strays returns the private directories whose owner has ended, and those of
// gateways for dir (the folder of package sharedgateway) that live and that claimed
// does not know. A gateway that is being started has an owner, the host that
// starts it, and does not count as a stray.
func Strays(dir string, claimed func(gateway process.Identity, name string) bool) []Stray {
	var found []Stray
	for _, p := range privates() {
		var owner process.Identity
		data, err := readNote(p.owner())
		if err != nil || json.Unmarshal(data, &owner) != nil || owner.Start == "" {
			continue // not known: it is left alone
		}
		var shared struct{ Dir, Name string }
		if data, err := readNote(p.join("shared.json")); err == nil && (json.Unmarshal(data, &shared) != nil || shared.Dir != dir) {
			continue // of another home: its own doctor looks after it
		}
		s := Stray{Dir: string(p), Name: shared.Name}
		gateway, kernels, err := p.processes()
		switch {
		case err != nil:
			continue // as above
		case process.Ended(owner):
			s.Kernels = slices.Concat(kernels, gateway)
		case shared.Dir != "" && slices.Contains(gateway, owner) && !claimed(owner, shared.Name):
			s.Gateway, s.Kernels = owner, kernels
		default:
			continue
		}
		found = append(found, s)
	}
	return found
}

// End ends what is left of it, and removes the directory; it reports whether all
// of it is gone. Each process is looked at again before it is killed.
func (s Stray) End(ctx context.Context) bool {
	p := private(s.Dir)
	if !p.ours() {
		return true
	}
	gateway, kernels, err := p.processes()
	if err != nil {
		return false
	}
	if len(opportunity.KillAll(ctx, append(gateway, kernels...))) > 0 {
		return false
	}
	return p.remove() == nil
}

// privates returns the private directories of this user.
func privates() []private {
	bases := []string{os.TempDir()}
	if short, err := shortBase(""); err == nil && short != bases[0] {
		bases = append(bases, short)
	}
	var found []private
	for _, base := range bases {
		dirs, _ := filepath.Glob(filepath.Join(base, dirPattern))
		for _, dir := range dirs {
			if p := private(dir); p.ours() {
				found = append(found, p)
			}
		}
	}
	return found
}

// processes returns the gateway that hosts share, and the kernels, that run from
// this directory. An editor that has one of its files open is neither. The error says that
// there may be others.
func (p private) processes() (gateway, kernels []process.Identity, err error) {
	for script, of := range map[string]*[]process.Identity{p.join("gateway.py"): &gateway, p.script(): &kernels} {
		holding, err := process.Holding(script)
		if err != nil && !errors.Is(err, process.ErrUnsupported) {
			return nil, nil, err
		}
		for _, id := range holding {
			args, err := process.Arguments(id.PID)
			if err != nil && !errors.Is(err, process.ErrNoProcess) && !errors.Is(err, process.ErrUnsupported) {
				return nil, nil, err
			}
			if err != nil || len(args) < 4 || args[1] != script || !process.Alive(id) {
				continue
			}
			if script == p.script() && (args[2] != "-f" || filepath.Dir(args[3]) != p.sockets()) {
				continue
			}
			if script != p.script() && args[2] != p.join("shared.json") {
				continue
			}
			*of = append(*of, id)
		}
	}
	return gateway, kernels, nil
}
