package temp

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/process"
)

// prefix begins the names of all folders.
const prefix = "coppice-"

// Make makes a folder in the system's folder for temporary files and returns its path.
// what is a word that says what it is for, without a "-". The caller removes it.
func Make(what string) (string, error) {
	name := prefix + what + "-"
	if maker := Maker(); maker != "" {
		name += maker + "-"
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return "", fmt.Errorf("make a folder for temporary files: %w", err)
	}
	return dir, nil
}

// Abandoned returns the folders whose makers have ended without removing them.
func Abandoned() []string {
	all, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return nil
	}
	ns := namespace()
	var found []string
	for _, dir := range all {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && isOurs(info) && dead(filepath.Base(dir), ns) {
			found = append(found, dir)
		}
	}
	return found
}

// Clean removes the folders that are abandoned and returns which they were. The end of
// ctx is looked at between two of them. The error says which could not be removed.
func Clean(ctx context.Context) (gone []string, err error) {
	for _, dir := range Abandoned() {
		if ctx.Err() != nil {
			return gone, errors.Join(err, context.Cause(ctx))
		}
		if failed := Remove(dir); failed != nil {
			err = errors.Join(err, fmt.Errorf("remove what was left behind: %w", failed))
			continue
		}
		gone = append(gone, dir)
	}
	return gone, err
}

// Remove removes a folder, unless something is mounted below it, which would go with it: then
// the error says so.
func Remove(dir string) error {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	at, err := mounts()
	if err != nil {
		return fmt.Errorf("see what is mounted below %s: %w", dir, err)
	}
	if point := below(filepath.Join(above, filepath.Base(dir)), at); point != "" {
		return fmt.Errorf("%s is mounted below %s, which stays: unmount it first", point, dir)
	}
	return os.RemoveAll(dir)
}

// below returns the first of these paths that is a folder or lies in it, "" for none.
func below(dir string, paths []string) string {
	for _, path := range paths {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return path
		}
	}
	return ""
}

// dead says whether a name is that of a folder whose maker, of this pid namespace, has
// ended.
func dead(name, ns string) bool {
	f := strings.Split(name, "-")
	const parts = 6 // coppice-WHAT-MAKER-RANDOM
	return len(f) == parts && ended(f[2:5], ns)
}

// Maker says in the name of a file or folder which process makes it: three words with "-"
// between them. "" when that cannot be found out.
func Maker() string {
	id, err := process.Identify(os.Getpid())
	if err != nil {
		return ""
	}
	return strconv.FormatInt(int64(id.PID), base) + "-" + hash(id.Start) + "-" + namespace()
}

// Ended says whether the process that a text of [Maker] is of has ended. It is false when
// that is not known, and of the processes of other pid namespaces.
func Ended(maker string) bool { return ended(strings.Split(maker, "-"), namespace()) }

func ended(maker []string, ns string) bool {
	const parts = 3 // PID-START-NAMESPACE
	if len(maker) != parts || maker[2] != ns {
		return false
	}
	pid, err := strconv.ParseInt(maker[0], base, 0)
	if err != nil || pid <= 0 {
		return false
	}
	id, err := process.Identify(int(pid))
	switch {
	case errors.Is(err, process.ErrNoProcess):
		return true
	case err != nil:
		return false
	default:
		return hash(id.Start) != maker[1]
	}
}

// base of the numbers in a name. Names are short because the path of a Unix socket, which
// programs make in such a folder, has no more than 107 bytes.
const base = 36

func hash(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	return strconv.FormatUint(uint64(h.Sum32()), base)
}

// namespace returns the number of the pid namespace of this process: pids of another one
// say nothing here.
func namespace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "0"
	}
	n, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(link, "pid:"), "[]"), 10, 64)
	if err != nil {
		return "0"
	}
	return strconv.FormatUint(n, base)
}
