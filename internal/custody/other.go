//go:build !linux

package custody

import (
	"context"
	"encoding/json"

	"github.com/coppice-run/coppice/internal/process"
)

// Supported says whether this system has custodians.
const Supported = false

// Custody is what a host has in the hands of a custodian. On this system there is none.
type Custody struct{}

// Begin starts a custodian. It returns [ErrUnsupported] here.
func Begin(context.Context, Options) (*Custody, error) { return nil, ErrUnsupported }

// Take takes a custody over. It returns [ErrUnsupported] here.
func Take(context.Context, Options, string) (*Custody, error) { return nil, ErrUnsupported }

// Scan looks which custodies there are: none here.
func Scan(context.Context, string) ([]Standing, error) { return nil, nil }

// Bury removes what is left of a custody. It returns [ErrUnsupported] here.
func Bury(string, string) error { return ErrUnsupported }

// ID names the custody.
func (*Custody) ID() string { return "" }

// Dir is the folder of the custody.
func (*Custody) Dir() string { return "" }

// Custodian is the process that keeps.
func (*Custody) Custodian() process.Identity { return process.Identity{} }

// Names is what was kept when the custody was taken over.
func (*Custody) Names() []string { return nil }

// Put keeps a thing.
func (*Custody) Put(context.Context, Item) error { return ErrUnsupported }

// Note replaces the note of a thing.
func (*Custody) Note(context.Context, string, json.RawMessage) error { return ErrUnsupported }

// Drop lets go of a thing.
func (*Custody) Drop(context.Context, string) error { return ErrUnsupported }

// Hand returns a thing that is kept.
func (*Custody) Hand(context.Context, string) (Item, error) { return Item{}, ErrUnsupported }

// Done is closed when the custodian is not there any more.
func (*Custody) Done() <-chan struct{} { return nil }

// Err says why.
func (*Custody) Err() error { return ErrUnsupported }

// Leave leaves what is kept to the next host.
func (*Custody) Leave(context.Context) error { return ErrUnsupported }

// End ends the custody.
func (*Custody) End(context.Context) error { return ErrUnsupported }
