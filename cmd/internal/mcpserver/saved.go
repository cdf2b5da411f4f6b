package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// maxSaved is how many checkpoints on disk one client over HTTP may have: what the host keeps
// is for all of them.
const maxSaved = 16

// reserved begins the names that no client chooses: those of handles, and in the
// host those of what belongs to one client.
const reserved = "mcp-"

// nobody is the owner that the server names where none is to be taken for another one's: what
// has owners is none of its clients'.
const nobody = reserved + "client"

// onDisk are the checkpoints on disk of a server's clients.
type onDisk struct {
	host   *coppice.Host
	cwd    string // that of calls that name none
	log    *slog.Logger
	scoped scoped
	// whose is the session that a client means by a name, and begin says that a client without
	// a connection that names none gets a new one. The error is for a model.
	whose func(req *mcp.CallToolRequest, name string, begin bool) (whose, error)
	// before and after stand around a call that uses a session.
	before, after func(ctx context.Context, req *mcp.CallToolRequest, at whose, key messages.SessionKey)
}

// whose is a session, and with it who may have its checkpoints.
type whose struct {
	name  string // in the host
	shown string // what the client calls it
	// scope is what begins the names, in the host, of its checkpoints. "": those that everybody
	// on the host may have; there is one client, or the session is shared.
	scope string
	begun bool // it is new
}

// scopeOf is the scope of a session that is a client's own.
func scopeOf(name string) string {
	own, _, _ := strings.Cut(name, "/")
	return own + "."
}

// scoped are the sessions and the checkpoints on disk that no one can name any more once this
// server has ended: those of clients over HTTP.
type scoped struct {
	mu       sync.Mutex
	sessions map[messages.SessionKey]bool // guarded by mu
	scopes   map[string]bool              // of which a checkpoint was saved; guarded by mu
	saving   map[string]int               // how many of a scope are being saved; guarded by mu
}

// used notes a session.
func (s *scoped) used(key messages.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[messages.SessionKey]bool{}
	}
	s.sessions[key] = true
}

// save notes the scope of a checkpoint that is to be saved, and returns how many of it are
// being saved, this one included. over has to be called once it is, or is not to be.
func (s *scoped) save(scope string) (n int, over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scopes == nil {
		s.scopes, s.saving = map[string]bool{}, map[string]int{}
	}
	s.scopes[scope] = true
	s.saving[scope]++
	return s.saving[scope], func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.saving[scope]--; s.saving[scope] == 0 {
			delete(s.saving, scope)
		}
	}
}

// ended forgets a session, and reports whether its scope has checkpoints.
func (s *scoped) ended(key messages.SessionKey, scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, key)
	has := s.scopes[scope]
	delete(s.scopes, scope)
	return has
}

// all are the sessions and scopes.
func (s *scoped) all() (keys []messages.SessionKey, scopes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.sessions {
		keys = append(keys, key)
	}
	for scope := range s.scopes {
		scopes = append(scopes, scope)
	}
	return keys, scopes
}

// keeps reports whether the host keeps sessions on disk.
func (d *onDisk) keeps() bool { return d.host.Snapshots() != nil }

// session is the one that a call is about, which need not run.
func (d *onDisk) session(at whose, cwd string) (messages.SessionKey, *coppice.Session) {
	key := messages.SessionKey{Session: at.name, Cwd: messages.SessionKey{Cwd: d.cwd}.In(cwd).Cwd}
	return key, d.host.Session(key.Session, coppice.In(key.Cwd))
}

// mine are the checkpoints on disk of a scope, under the names that its clients give them.
func (d *onDisk) mine(ctx context.Context, scope string) ([]hibernate.Saved, error) {
	all, err := d.host.SavedCheckpoints(ctx)
	list := make([]hibernate.Saved, 0, len(all))
	for _, one := range all {
		name, ok := strings.CutPrefix(one.Key.Name, scope)
		if ok && one.Open && one.Key.Workspace == "" && !strings.HasPrefix(name, reserved) {
			one.Key.Name = name
			list = append(list, one)
		}
	}
	return list, err
}

// called is what a checkpoint of a scope is called in the host.
func called(scope, name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("name: is missing; say how the checkpoint is called")
	case strings.HasPrefix(name, reserved):
		return "", fmt.Errorf("name: %.80q begins with %s, which is for the server; choose another name", name, reserved)
	}
	return scope + name, nil
}

// shownAs has an error name a checkpoint as its client does.
func shownAs(name string, err error) error {
	if r, ok := errors.AsType[*messages.HibernateRefused](err); ok && r.Checkpoint != "" {
		shown := *r
		shown.Checkpoint = name
		return &shown
	}
	if r, ok := errors.AsType[*messages.RestoreRefused](err); ok {
		shown := *r
		shown.Checkpoint = name
		return &shown
	}
	return err
}

// save keeps a session on disk.
func (d *onDisk) save(ctx context.Context, req *mcp.CallToolRequest, args saveArgs) (out saved, err error) {
	at, err := d.whose(req, args.Session, false)
	if err != nil {
		return out, err
	}
	_, session := d.session(at, args.Cwd)
	name, err := called(at.scope, args.Name)
	if err != nil {
		return out, err
	}
	if at.scope != "" {
		saving, over := d.scoped.save(at.scope) // before the list: one that is done meanwhile is in it
		defer over()
		list, err := d.mine(ctx, at.scope)
		if err != nil {
			return out, err
		}
		there := slices.ContainsFunc(list, func(c hibernate.Saved) bool { return c.Key.Name == args.Name })
		if len(list)+saving > maxSaved && !there {
			return out, fmt.Errorf("there are %d checkpoints, as many as you may have; drop one with %s, or replace one", len(list)+saving-1, dropTool)
		}
	}
	kept, err := session.SaveCheckpoint(ctx, name, coppice.SaveOptions{Owner: nobody, Lossy: args.Lossy, Replace: args.Replace})
	if err != nil {
		return out, shownAs(args.Name, err)
	}
	return saved{Name: args.Name, Session: at.shown, Bytes: kept.Bytes, Memory: kept.Memory}, nil
}

// restore has a session go on from what is on disk. A client without a connection that names no
// session gets a new one.
func (d *onDisk) restore(ctx context.Context, req *mcp.CallToolRequest, args restoreArgs) (out restored, err error) {
	at, err := d.whose(req, args.Session, true)
	if err != nil {
		return out, err
	}
	from := at
	if args.From != "" || at.begun {
		if from, err = d.whose(req, args.From, false); err != nil {
			return out, fmt.Errorf("from: %w", err)
		}
	}
	name, err := called(from.scope, args.Name)
	if err != nil {
		return out, err
	}
	key, session := d.session(at, args.Cwd)
	d.before(ctx, req, at, key)
	r, err := session.RestoreCheckpoint(ctx, name, coppice.RestoreOptions{})
	if err != nil {
		return out, shownAs(args.Name, err)
	}
	d.after(ctx, req, at, key)
	return restored{Session: at.shown, Name: args.Name, Restored: r}, nil
}

// list lists what the client may restore.
func (d *onDisk) list(ctx context.Context, req *mcp.CallToolRequest, args savedArgs) (out savedList, err error) {
	at, err := d.whose(req, args.Session, false)
	if err != nil {
		return out, err
	}
	list, err := d.mine(ctx, at.scope)
	out.Checkpoints = make([]savedInfo, 0, len(list))
	for _, one := range list {
		info := savedInfo{Name: one.Key.Name, Made: one.Made.UTC().Format(time.RFC3339), Bytes: one.Bytes, Python: one.Python, Memory: one.Memory}
		if !one.Expires.IsZero() {
			info.Expires = one.Expires.UTC().Format(time.RFC3339)
		}
		out.Checkpoints = append(out.Checkpoints, info)
	}
	return out, err
}

// drop drops one that the client may restore.
func (d *onDisk) drop(ctx context.Context, req *mcp.CallToolRequest, args dropArgs) (out dropped, err error) {
	at, err := d.whose(req, args.Session, false)
	if err != nil {
		return out, err
	}
	name, err := called(at.scope, args.Name)
	if err != nil {
		return out, err
	}
	if err := d.host.DropCheckpoint(ctx, messages.CheckpointKey{Name: name}, nobody); errors.Is(err, coppice.ErrNoCheckpoint) {
		return out, fmt.Errorf("name: there is none called %.80q; %s lists them", args.Name, savedTool)
	} else if err != nil {
		return out, shownAs(args.Name, err)
	}
	return dropped{args.Name + ": dropped"}, nil
}

// forget drops the checkpoints of a scope, whose clients are gone.
func (d *onDisk) forget(ctx context.Context, scope string) {
	all, err := d.host.SavedCheckpoints(ctx)
	for _, one := range all {
		if strings.HasPrefix(one.Key.Name, scope) {
			err = errors.Join(err, d.host.DropCheckpoint(ctx, one.Key, ""))
		}
	}
	if err != nil && !errors.Is(err, coppice.ErrNoCheckpoint) {
		d.log.Warn("drop the checkpoints of a client that is gone; they expire", slog.Any("err", err))
	}
}

// ended forgets a session that has ended because its client is gone, with its checkpoints.
func (d *onDisk) ended(ctx context.Context, key messages.SessionKey) {
	if scope := scopeOf(key.Session); d.scoped.ended(key, scope) {
		d.forget(ctx, scope)
	}
}

// end drops what no client can name once the server has ended; end ends sessions.
func (d *onDisk) end(end func(context.Context, []messages.SessionKey)) {
	keys, scopes := d.scoped.all()
	end(context.Background(), keys)
	for _, scope := range scopes {
		d.forget(context.Background(), scope)
	}
}
