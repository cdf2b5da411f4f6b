package gateway

import "github.com/coppice-run/coppice/messages"

// Past is why the last kernels of keys ended.
type Past struct{ *past }

// NewPast remembers so many keys.
func NewPast(limit int) Past { return Past{newPast(limit)} }

// Put notes the end of a key's kernel.
func (p Past) Put(key string, e messages.Exit) { p.put(key, e) }

// Get is nil when nothing is known.
func (p Past) Get(key string) *messages.Exit { return p.get(key) }

// Drop forgets a key.
func (p Past) Drop(key string) { p.drop(key) }
