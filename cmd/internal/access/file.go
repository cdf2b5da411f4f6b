package access

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/file"
)

// What a file of tokens fails with.
var (
	// ErrOpenToOthers is matched by the error for a file that others than its user may read
	// or write.
	ErrOpenToOthers = errors.New("others can read or write it")
	// ErrUnknownToken is matched by the error for an ID that no token has.
	ErrUnknownToken = errors.New("there is no such token")
	// ErrOptions is matched by the error for a token that cannot be made.
	ErrOptions = errors.New("such a token cannot be made")
)

const (
	// remembered is how long a token that opens nothing any more is listed.
	remembered = 90 * 24 * time.Hour
	// lockPause is how often a lock is tried that another program has.
	lockPause = 20 * time.Millisecond
	// MaxLife is how long a token may be good for at most.
	MaxLife = 10 * 365 * 24 * time.Hour
)

// File is a file of tokens. Several programs may change one at a time: they wait for each
// other.
type File struct{ Path string }

// Load reads the tokens. The error matches fs.ErrNotExist, ErrOpenToOthers or ErrMalformed,
// or is the system's.
func (f File) Load(ctx context.Context) ([]Token, error) {
	list, _, err := f.load(ctx)
	return list, err
}

func (f File) load(ctx context.Context) ([]Token, fs.FileInfo, error) {
	data, info, err := readPrivate(ctx, f.Path)
	if err != nil {
		return nil, info, fmt.Errorf("read the tokens: %w", err)
	}
	list, err := parse(data)
	if err != nil {
		return nil, info, fmt.Errorf("read the tokens in %s: %w", f.Path, err)
	}
	return list, info, nil
}

// readPrivate reads a file that is its user's alone.
func readPrivate(ctx context.Context, path string) ([]byte, fs.FileInfo, error) {
	in, err := file.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	info, err := in.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, info, fmt.Errorf("%s has the mode %04o: %w; chmod 600 %s", path, info.Mode().Perm(), ErrOpenToOthers, path)
	}
	data, err := file.ReadAll(ctx, in, maxFile)
	return data, info, err
}

// Create makes a token for a tenant, and returns it and what the file has of it. It is
// told this once. lives is how long it is good for. The file is made if it is not there.
// The error matches ErrOptions, or is that of Load.
func (f File) Create(ctx context.Context, tenant string, scope httpserver.Scope, lives time.Duration) (string, Token, error) {
	if err := CheckTenant(tenant); err != nil {
		return "", Token{}, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if !slices.Contains(httpserver.Scopes(), scope) {
		return "", Token{}, fmt.Errorf("%w: the scope must be one of read, run, admin, not %.40q", ErrOptions, scope)
	}
	if lives < time.Second || lives > MaxLife {
		return "", Token{}, fmt.Errorf("%w: it must be good for 1s to %v, not %v", ErrOptions, MaxLife, lives)
	}
	now := time.Now()
	text, made := newToken(tenant, scope, now, now.Add(lives))
	err := f.change(ctx, func(list []Token) ([]Token, error) {
		list = slices.DeleteFunc(list, func(t Token) bool {
			old := now.Add(-remembered)
			return t.Expires.Before(old) || !t.Revoked.IsZero() && t.Revoked.Before(old)
		})
		if len(list) >= maxTokens {
			return nil, fmt.Errorf("%w: there are %d already; revoke those that are not used", ErrOptions, len(list))
		}
		return append(list, made), nil
	})
	if err != nil {
		return "", Token{}, err
	}
	return text, made, nil
}

// Revoke makes a token open nothing from now on; one that was revoked stays so. The error
// matches ErrUnknownToken, or is that of Load.
func (f File) Revoke(ctx context.Context, id string) (Token, error) {
	var revoked Token
	err := f.change(ctx, func(list []Token) ([]Token, error) {
		i := slices.IndexFunc(list, func(t Token) bool { return t.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("%w: %.40q in %s; coppice token list shows those that there are", ErrUnknownToken, id, f.Path)
		}
		if list[i].Revoked.IsZero() {
			list[i].Revoked = time.Now().UTC().Truncate(time.Second)
		}
		revoked = list[i]
		return list, nil
	})
	return revoked, err
}

// change reads the file, has it changed, and writes it whole or not at all, while no other
// program does.
func (f File) change(ctx context.Context, do func([]Token) ([]Token, error)) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return fmt.Errorf("make the folder of the tokens: %w", err)
	}
	lock := flock.New(f.Path+".lock", flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDWR|file.NonBlock))
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return fmt.Errorf("wait for %s, which another program changes: %w", f.Path, err)
	}
	defer func() { _ = lock.Unlock() }() // it ends with the process, too
	list, err := f.Load(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if list, err = do(list); err != nil {
		return err
	}
	data, err := encode(list)
	if err != nil {
		return err
	}
	return file.Write(f.Path, data, file.WriteOptions{Durable: true})
}
