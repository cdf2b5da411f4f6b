package envd

import (
	"context"
	"path"
	"regexp"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem"
	"github.com/coppice-run/coppice/workspace/files"
)

// translator makes of the changes of a directory what E2B's clients expect. A file that
// package files writes takes the place of the one before; clients expect to hear that it
// was made, if it was not there, and that it was written.
type translator struct {
	base   string              // the directory, in the folder
	known  map[string]struct{} // what is in it, by its name there
	placed bool                // a file that was written is about to take its place
}

// maxKnown bounds of how many names a translator knows that they are there. Of one more,
// a client hears when it is written that it was made, too.
const maxKnown = 100_000

// unfinished are the temporary files of package files.
var unfinished = regexp.MustCompile(`^\.[A-Z2-7]{26}\.tmp$`)

// newTranslator looks at what is there. The watch has begun: what is made meanwhile is
// told as made, or not, but as written in any case.
func newTranslator(ctx context.Context, f *files.Folder, base string, recursive bool) *translator {
	t := &translator{base: base, known: map[string]struct{}{}}
	depth := 1
	if recursive {
		depth = -1
	}
	list, _, err := f.List(ctx, base, files.ListOptions{Depth: depth, Most: maxKnown})
	if err != nil {
		return t // the watch will say why
	}
	for _, i := range list {
		t.known[t.name(i.Path)] = struct{}{}
	}
	return t
}

// name is a path relative to the directory.
func (t *translator) name(at string) string {
	if t.base == "." {
		return at
	}
	return strings.TrimPrefix(strings.TrimPrefix(at, t.base), "/")
}

// events are what a change is for clients, in order.
func (t *translator) events(c files.Change) []filesystem.EventType {
	name := t.name(c.Path)
	if unfinished.MatchString(path.Base(name)) {
		t.placed = t.placed || c.Op == files.ChangeMovedAway
		return nil
	}
	_, known := t.known[name]
	switch c.Op {
	case files.ChangeMade:
		if len(t.known) < maxKnown {
			t.known[name] = struct{}{}
		}
		if !t.placed {
			return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_CREATE}
		}
		t.placed = false
		if known {
			return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_WRITE}
		}
		return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_CREATE, filesystem.EventType_EVENT_TYPE_WRITE}
	case files.ChangeWritten:
		return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_WRITE}
	case files.ChangeRemoved:
		delete(t.known, name)
		return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_REMOVE}
	case files.ChangeMovedAway:
		delete(t.known, name)
		return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_RENAME}
	case files.ChangeMode:
		return []filesystem.EventType{filesystem.EventType_EVENT_TYPE_CHMOD}
	case files.ChangeLost: // there is no word for it
	}
	return nil
}
