package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/store"
)

// fleetStore are the flags of the folder in which the nodes of a fleet keep sessions for each
// other.
type fleetStore struct {
	dir, key string
}

func (s *fleetStore) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.dir, "fleet-store", "", "with --hibernate, the folder in which nodes keep sessions for each other: one that all nodes have, such as a shared file system")
	flags.StringVar(&s.key, "fleet-store-key", "", "the file of the key that what is in --fleet-store is sealed with, 32 bytes, of mode 0600: the same for all nodes, and not in that folder")
}

// alone refuses the flags of a server that is in no fleet. The error is a UsageError.
func (s fleetStore) alone() error {
	if s.dir != "" || s.key != "" {
		return console.Usagef("--fleet-store and --fleet-store-key are for a node of a fleet: say with --fleet where its directory is, or leave them out: --hibernate alone keeps sessions for this server")
	}
	return nil
}

// check refuses flags that do not go together. hibernates says that sessions are to be kept on
// disk. The error is a UsageError.
func (s fleetStore) check(hibernates bool) error {
	var lack []string
	for name, value := range map[string]string{"--fleet-store": s.dir, "--fleet-store-key": s.key} {
		if value == "" {
			lack = append(lack, name)
		}
	}
	switch {
	case !hibernates && len(lack) < 2:
		return console.Usagef("--fleet-store and --fleet-store-key are for --hibernate lossless or lossy, which is not given")
	case !hibernates:
		return nil
	case len(lack) == 2:
		return console.Usagef("--hibernate in a fleet needs --fleet-store, a folder that all nodes have, and --fleet-store-key, the file of a key that all nodes have: what this host would keep in its own folder, sealed with its own key, no other node could restore")
	case len(lack) == 1 && lack[0] == "--fleet-store-key":
		return console.Usagef("--fleet-store needs --fleet-store-key, the file of a key that all nodes have: what is sealed with the key of one host, another node cannot restore")
	case len(lack) == 1:
		return console.Usagef("--fleet-store-key is the key of what is in --fleet-store, which is not given")
	case lies(s.dir, s.key):
		return console.Usagef("--fleet-store-key: %s is in --fleet-store: whoever copies what is kept would have its key with it; put it elsewhere", s.key)
	}
	return nil
}

// lies reports whether a path is that of something in a folder, as far as their names say.
func lies(dir, path string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// open opens the folder, and that of what stays with the node whose home is given.
func (s fleetStore) open(ctx context.Context, home string) (*fleetapi.Records, error) {
	if err := s.checkKey(); err != nil {
		return nil, fmt.Errorf("serve --fleet-store-key: %w", err)
	}
	shared, err := store.OpenFolder(ctx, store.FolderOptions{Dir: s.dir, KeyFile: s.key})
	if err == nil {
		err = checkSeal(ctx, shared)
	}
	if err != nil {
		return nil, fmt.Errorf("serve --fleet-store %s: %w", s.dir, err)
	}
	own, err := store.OpenFolder(ctx, store.FolderOptions{Dir: filepath.Join(home, "hibernated"), KeyFile: filepath.Join(home, "hibernate.key")})
	if err != nil {
		return nil, err
	}
	return fleetapi.NewRecords(shared, own), nil
}

// checkKey refuses a file that is not there, which each node would make for itself, and one
// that others can read.
func (s fleetStore) checkKey() error {
	in, err := file.Open(s.key)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; make one, once, and give it to all nodes: (umask 077; head -c %d /dev/urandom > %s)", err, store.KeySize, s.key)
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was not even read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%s has the mode %04o, and others can read it; chmod 600 %s", s.key, info.Mode().Perm(), s.key)
	}
	return nil
}

// sealed is the name of a record that is there to see that all nodes have one key.
const sealed = "the key of the fleet"

// checkSeal refuses a folder whose records are sealed with another key.
func checkSeal(ctx context.Context, shared store.Store) error {
	record, err := shared.Get(ctx, sealed, store.Claim{})
	if errors.Is(err, store.ErrNone) {
		now := time.Now()
		never := now.AddDate(1000, 0, 0)
		if err := shared.Put(ctx, store.Header{Name: sealed, Made: now, Expires: never, Manifest: json.RawMessage("{}")}, strings.NewReader("")); err != nil {
			return err
		}
		record, err = shared.Get(ctx, sealed, store.Claim{}) // another node may have put one there in the same moment
	}
	if refused, ok := errors.AsType[*store.RefusedError](err); ok {
		return fmt.Errorf("its records are sealed with another key than that of --fleet-store-key, and all nodes of a fleet have the same: %w", refused)
	}
	if errors.Is(err, store.ErrBusy) { // another node looks at it, and this one could read it
		return nil
	}
	if err != nil {
		return err
	}
	return record.Close()
}

// keep has the host keep sessions where the other nodes of the fleet have them, if it does.
func (m *membership) keep(o *coppice.Options) {
	if m != nil && m.records != nil {
		o.Store = m.records
	}
}
