package primitive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// Call is one call of a primitive, as its handler sees it.
type Call struct {
	// Name is the primitive's, ID the call's.
	Name, ID string
	// Session is whose code calls, Exec the call of the host, Owner its owner.
	Session     messages.SessionKey
	Exec, Owner string
	// Memory is the key of the conversation that the call belongs to; "" when the
	// host did not say.
	Memory string
	// Args are the arguments by name, without those that were left out. Those of
	// *args are a list under their parameter's name, those of **kwargs an object.
	Args map[string]json.RawMessage
	// BackendName and Backend are those of the primitive's pack.
	BackendName string
	Backend     any
	// Registry is where the call was made.
	Registry *Registry
	// Emit emits an event into the stream of the call. It does nothing after the
	// handler has returned.
	Emit func(name string, data any)
}

// Bind reads the arguments into the struct that v points to, by their JSON names.
func (c *Call) Bind(v any) error {
	raw, err := json.Marshal(c.Args)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return &messages.HostError{Type: "TypeError", Message: c.Name + "(): " + strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// GetBackend returns another backend of the registry.
func (c *Call) GetBackend(name string) (any, bool) {
	c.Registry.mu.RLock()
	defer c.Registry.mu.RUnlock()
	b, ok := c.Registry.backends[name]
	return b, ok
}

// Reply is the end of a call.
type Reply struct {
	Value     json.RawMessage
	NextSteps []string
}

// Pauses says that the active time of a call stands still while name runs.
func (r *Registry) Pauses(name string) bool {
	e := r.find(name)
	return e != nil && e.Pause
}

// Call calls the primitive c.Name with arguments as Python gave them: an object
// with "args" and "kwargs". It fills in what of c only the registry knows.
func (r *Registry) Call(ctx context.Context, c *Call, arguments json.RawMessage) (Reply, error) {
	e := r.find(c.Name)
	if e == nil {
		return Reply{}, &messages.HostError{Type: "KeyError", Message: fmt.Sprintf("there is no primitive %s; runtime.list_primitives() lists them all", c.Name)}
	}
	c.Name, c.Registry, c.BackendName = e.Name, r, e.backend
	var err error
	if c.Args, err = e.bind(arguments); err != nil {
		return Reply{}, err
	}
	if e.backend != "" {
		var ok bool
		if c.Backend, ok = c.GetBackend(e.backend); !ok {
			return Reply{}, &messages.HostError{Type: "RuntimeError", Message: fmt.Sprintf("the backend %q of the primitive %s is not installed", e.backend, e.Name)}
		}
	}
	value, err := e.Handler(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return Reply{}, &messages.HostError{Type: "TypeError", Message: fmt.Sprintf("%s returned a value that cannot be sent: %v", e.Name, err)}
	}
	return Reply{Value: raw, NextSteps: e.NextSteps}, nil
}

// find returns a primitive by its name; those of the namespace runtime have a
// short one too.
func (r *Registry) find(name string) *entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.primitives[name]; e != nil {
		return e
	}
	return r.primitives[ownPack+"."+name]
}

// Names returns the names that begin with prefix and contain a text, sorted.
func (r *Registry) Names(prefix, contains string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := []string{}
	for name := range r.primitives {
		if strings.HasPrefix(name, prefix) && strings.Contains(name, contains) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Backends returns the names of the backends, sorted.
func (r *Registry) Backends() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return append([]string{}, slices.Sorted(maps.Keys(r.backends))...)
}

// Packs returns the installed packs, sorted by name, without their backends.
func (r *Registry) Packs() []Pack {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var packs []Pack
	for _, name := range slices.Sorted(maps.Keys(r.packs)) {
		p := r.packs[name]
		p.Backend = nil
		packs = append(packs, p)
	}
	return packs
}

// comparable says whether comparing a value with itself is allowed.
func comparable(v any) bool { return reflect.TypeOf(v).Comparable() }
