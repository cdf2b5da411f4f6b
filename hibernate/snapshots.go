package hibernate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// Snapshots copies what is kept of sessions, for other sessions that are to begin with it:
// in another folder, and any number of times. [Keeper.Snapshots] returns it; any goroutine
// may call its methods.
type Snapshots struct{ k *Keeper }

// Snapshots returns what copies the sessions that k keeps.
func (k *Keeper) Snapshots() *Snapshots { return &Snapshots{k} }

// Save copies what is kept of a session to a record of a name that is no session's, such as
// "snapshot/a/1". It stays when the session is restored, reset or closed, until [Snapshots.Discard].
// The error matches [store.ErrNone] when nothing is kept of the session.
func (s *Snapshots) Save(ctx context.Context, key messages.SessionKey, name string) error {
	if _, is := messages.ParseSessionKey(name); is || name == "" {
		return fmt.Errorf("save the session %s: %q is the name of a session", key, name)
	}
	err := s.copy(ctx, key.ID(), name, func(h *store.Header, _ *os.File) error {
		h.Expires = never
		return nil
	})
	if err != nil {
		return fmt.Errorf("save the session %s: %w", key, err)
	}
	return nil
}

// Place copies what was saved under a name to a session that has no kernel, whose next call
// restores it. What was in the folder from, is in the folder to now: the working directory,
// the path of imports and files that are open are taken from there, and so are variables of the
// environment that name something in it. Other variables are as they were: where the first folder
// is named in what the session holds, the call that restores it says so.
// The error matches [store.ErrNone] when there is no such record.
func (s *Snapshots) Place(ctx context.Context, name string, key messages.SessionKey, from, to string) error {
	err := s.copy(ctx, name, key.ID(), func(h *store.Header, f *os.File) error {
		h.Session, h.Made, h.Expires = key.ID(), time.Now(), time.Time{}
		if from == to {
			return nil
		}
		return move(h, f, from, to)
	})
	if err != nil {
		return fmt.Errorf("place %s in the session %s: %w", name, key, err)
	}
	return nil
}

// Discard drops all that was saved under names that begin with a prefix, which must be that of
// no session.
func (s *Snapshots) Discard(ctx context.Context, prefix string) error {
	list, err := s.k.o.Store.List(ctx)
	for _, h := range list {
		if _, is := messages.ParseSessionKey(h.Name); !is && prefix != "" && strings.HasPrefix(h.Name, prefix) {
			err = errors.Join(err, s.k.o.Store.Delete(ctx, h.Name))
		}
	}
	if err != nil {
		return fmt.Errorf("drop what was saved as %s: %w", prefix, err)
	}
	return nil
}

// copy copies a record to another name, with a change of its header.
func (s *Snapshots) copy(ctx context.Context, from, to string, change func(h *store.Header, image *os.File) error) error {
	f, err := s.k.scratch()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it has no name: its end is that of its bytes
	h, err := s.read(ctx, from, f)
	if err != nil {
		return err
	}
	h.Name = to
	if err := change(&h, f); err != nil {
		return err
	}
	_, done, err := s.k.turn(ctx, to)
	if err != nil {
		return err
	}
	defer done()
	return s.k.o.Store.Put(ctx, h, f)
}

// read reads a record into a file.
func (s *Snapshots) read(ctx context.Context, name string, to *os.File) (store.Header, error) {
	return s.k.copyTo(ctx, name, store.Claim{Owner: s.owner(ctx, name), Platform: platform()}, to)
}

// owner is one of those who may have a record, "" for everyone: a copy has the same owners.
func (s *Snapshots) owner(ctx context.Context, name string) string {
	list, _ := s.k.o.Store.List(ctx) // the record is read next, which says what is wrong
	for _, h := range list {
		if h.Name == name && len(h.Owners) > 0 {
			return h.Owners[0]
		}
	}
	return ""
}

// Moved is the path at which something is that was in the folder from, when that folder is to
// now. Other paths are as they were.
func Moved(path, from, to string) string {
	if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return to + rest
	}
	return path
}

// move has an image be of a session in another folder.
func move(h *store.Header, image *os.File, from, to string) error {
	var c content
	if err := json.Unmarshal(h.Manifest, &c); err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	var err error
	if c.Image, from, err = relocate(c.Image, from, to); err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	named, err := mentions(io.NewSectionReader(image, 0, h.Size()), from)
	if err != nil {
		return fmt.Errorf("read what is kept: %w", err)
	}
	c.Notes = nil // of a copy of which this is another one
	if named {
		c.Notes = []string{fmt.Sprintf("it was copied from %s to %s, and variables may still name the first", from, to)}
	}
	h.Manifest, err = json.Marshal(c)
	return err
}

// relocate changes what an image says of the folder of its session. It returns the folder
// that what is in the image names: that is another one than from when the image was copied
// there, and has not been restored since.
func relocate(image messages.RawJSON, from, to string) (_ messages.RawJSON, first string, err error) {
	var all, around map[string]json.RawMessage
	if err := json.Unmarshal(image, &all); err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(all["around"], &around); err != nil {
		return nil, "", err
	}
	first = from
	if data, ok := all["moved"]; ok {
		var moved [2]string
		if err := json.Unmarshal(data, &moved); err != nil {
			return nil, "", err
		}
		first = moved[0]
	}
	var paths []string
	var cwd *string
	var env map[string]*string
	for name, value := range map[string]any{"path": &paths, "cwd": &cwd, "env": &env} {
		if data, ok := around[name]; ok {
			if err := json.Unmarshal(data, value); err != nil {
				return nil, "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for i, p := range paths {
		paths[i] = Moved(p, from, to)
	}
	if cwd != nil {
		*cwd = Moved(*cwd, from, to)
	}
	for _, value := range env {
		if value != nil { // else it was removed
			*value = Moved(*value, from, to)
		}
	}
	put := func(in map[string]json.RawMessage, name string, value any, there bool) (err error) {
		if there {
			in[name], err = json.Marshal(value)
		}
		return err
	}
	err = errors.Join(put(around, "path", paths, paths != nil), put(around, "cwd", cwd, cwd != nil), put(around, "env", env, env != nil),
		put(all, "moved", [2]string{first, to}, true))
	if err == nil {
		err = put(all, "around", around, true)
	}
	if err != nil {
		return nil, "", err
	}
	image, err = json.Marshal(all)
	return image, first, err
}

// mentions reports whether a text stands somewhere in what r reads.
func mentions(r io.Reader, text string) (bool, error) {
	const window = 256 << 10
	buffer, kept := make([]byte, window+len(text)), 0
	for {
		n, err := io.ReadFull(r, buffer[kept:])
		seen := buffer[:kept+n]
		if bytes.Contains(seen, []byte(text)) {
			return true, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buffer, seen[len(seen)-len(text)+1:]) // it may stand across two windows
	}
}
