package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace/files"
)

// moved counts what was copied.
type moved struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	left  int   // what was left out
}

// done says what was copied. What was left out makes the command fail.
func (a *app) done(m moved) error {
	if a.json {
		if err := a.WriteJSON(m); err != nil {
			return err
		}
	} else {
		a.Err.Lines(fmt.Sprintf("%s, %s", render.Number(m.Files, "file"), render.Bytes(m.Bytes)))
	}
	if m.left > 0 {
		return &console.Exit{Code: console.Raised, Err: errors.New(render.Number(m.left, "entry") + " left out")}
	}
	return nil
}

func (a *app) putCommand() *cobra.Command {
	return console.Command{
		Use: "put WORKSPACE FILE|FOLDER|- [PATH]", Short: "Copy a file, a folder or standard input into a workspace", Errors: console.ServerFailure,
		Long: `Copy a file or a folder into a workspace, with its permissions, or standard input
with "-", which needs a PATH. Without a PATH it keeps its name. A PATH that ends in / is
a folder to copy into. Files that are there are replaced. Symbolic links and what is no
file are left out, and named, and so is what has a name that is no UTF-8: the rest is
copied, and the exit code is 1.`,
		Example: `  coppice workspace put etl data
  coppice workspace put etl report.csv in/
  tar c . | coppice workspace put etl - source.tar`,
		Args: console.Arguments{Least: 2, Most: 3, Wants: "put wants the name of a workspace, what to copy, and maybe where to"},
		Run: func(ctx context.Context, args []string) error {
			to := ""
			if len(args) > 2 {
				to = args[2]
			}
			return a.WithServer(func(c *client.Client) error { return a.put(ctx, c, args[0], args[1], to) })
		},
	}.Make()
}

// target is where something called name goes.
func target(to, name string) string {
	switch {
	case to == "":
		return name
	case to[len(to)-1] == '/':
		return path.Join(to, name)
	default:
		return to
	}
}

func (a *app) put(ctx context.Context, c *client.Client, workspace, from, to string) error {
	if from == "-" {
		if to == "" || to[len(to)-1] == '/' {
			return console.Usagef("standard input has no name: say where it goes, coppice workspace put %s - PATH", workspace)
		}
		f, err := c.WriteFile(ctx, workspace, to, a.In, client.WriteFile{})
		if err != nil {
			return err
		}
		return a.done(moved{Files: 1, Bytes: f.Size})
	}
	abs, err := filepath.Abs(from)
	if err != nil {
		return console.UsageError{Err: err}
	}
	info, err := os.Stat(abs)
	if err != nil {
		return console.UsageError{Err: err}
	}
	var m moved
	to = target(to, filepath.Base(abs))
	if !info.IsDir() {
		if err := putFile(ctx, c, workspace, abs, to, &m); err != nil {
			return err
		}
		return a.done(m)
	}
	err = filepath.WalkDir(abs, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(abs, at)
		if err != nil {
			return err
		}
		name := path.Join(to, filepath.ToSlash(below))
		switch {
		case !utf8.ValidString(below):
			a.leaveOut(at, "its name is no UTF-8", &m)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			_, err := c.MakeFolder(ctx, workspace, name)
			return err
		case d.Type().IsRegular():
			return putFile(ctx, c, workspace, at, name, &m)
		default:
			a.leaveOut(at, notRegular, &m)
			return nil
		}
	})
	if err != nil {
		return err
	}
	return a.done(m)
}

// putFile copies one file.
func putFile(ctx context.Context, c *client.Client, workspace, from, to string, m *moved) error {
	f, err := file.Open(from)
	if err != nil {
		return console.UsageError{Err: err}
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	made, err := c.WriteFile(ctx, workspace, to, f, client.WriteFile{Mode: fmt.Sprintf("%03o", info.Mode().Perm()), Size: info.Size()})
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	m.Files++
	m.Bytes += made.Size
	return nil
}

func (a *app) getCommand() *cobra.Command {
	return console.Command{
		Use: "get WORKSPACE PATH [FILE|FOLDER|-]", Short: "Copy a file or a folder out of a workspace", Errors: console.ServerFailure,
		Long: `Copy a file or a folder out of a workspace, with its permissions; with "-" a file to
standard output. Without a third argument it keeps its name, in this folder. One that
ends in / is a folder to copy into. Files that are there are replaced. Symbolic links
and what is no file are left out, and named, and so is what has a name that is no UTF-8: the rest is
copied, and the exit code is 1.`,
		Example: `  coppice workspace get etl result.csv
  coppice workspace get etl out results
  coppice workspace get etl log.txt - | tail`,
		Args: console.Arguments{Least: 2, Most: 3, Wants: "get wants the name of a workspace, a path in it, and maybe where to"},
		Run: func(ctx context.Context, args []string) error {
			to := ""
			if len(args) > 2 {
				to = args[2]
			}
			return a.WithServer(func(c *client.Client) error { return a.get(ctx, c, args[0], args[1], to) })
		},
	}.Make()
}

func (a *app) get(ctx context.Context, c *client.Client, workspace, from, to string) error {
	if to == "-" {
		r, err := c.OpenFile(ctx, workspace, from, client.ReadFile{})
		if err != nil {
			return err
		}
		_, err = io.Copy(a.Out, r)
		return errors.Join(err, r.Close())
	}
	info, err := c.StatFile(ctx, workspace, from)
	if err != nil {
		return err
	}
	name := path.Base(info.Path)
	if info.Path == "." {
		name = workspace
	}
	to = target(filepath.ToSlash(to), name)
	var m moved
	if info.Kind != client.FileDirectory {
		if err := a.getFile(ctx, c, workspace, info, filepath.FromSlash(to), &m); err != nil {
			return err
		}
		return a.done(m)
	}
	list, err := c.ListFiles(ctx, workspace, client.ListFiles{Path: from, Depth: -1})
	if err != nil {
		return err
	}
	if list.More {
		return fmt.Errorf("%s has more than %d entries; copy the folders below it", from, len(list.Files))
	}
	to = filepath.FromSlash(to)
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // as its user makes folders
		return err
	}
	// Whatever a server says is the name of a file, it leads nowhere but into the folder.
	folder, err := files.Open(to, files.Options{})
	if err != nil {
		return err
	}
	for _, f := range list.Files {
		below := f.Path
		if info.Path != "." {
			below = strings.TrimPrefix(f.Path, info.Path+"/")
		}
		if err = a.getInto(ctx, c, workspace, f, folder, below, &m); err != nil {
			break
		}
	}
	if err = errors.Join(err, folder.Close()); err != nil {
		return err
	}
	return a.done(m)
}

// getInto copies one thing of a folder.
func (a *app) getInto(ctx context.Context, c *client.Client, workspace string, f client.File, folder *files.Folder, below string, m *moved) error {
	if f.NotUTF8 {
		a.leaveOut(f.Path, "its name is no UTF-8", m)
		return nil
	}
	switch f.Kind {
	case client.FileDirectory:
		_, err := folder.MakeDir(below, bits(f.Mode)|0o700)
		return err
	case client.FileRegular:
	default:
		a.leaveOut(f.Path, notRegular, m)
		return nil
	}
	r, err := c.OpenFile(ctx, workspace, f.Path, client.ReadFile{})
	if err != nil {
		return fmt.Errorf("copy %s: %w", f.Path, err)
	}
	made, err := folder.Write(ctx, below, r, files.WriteOptions{Mode: bits(r.Mode())})
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	m.Files++
	m.Bytes += made.Size
	return nil
}

// notRegular is why links and what is no file are left out.
const notRegular = "it is no regular file"

// leaveOut names what is not copied.
func (a *app) leaveOut(name, why string, m *moved) {
	m.left++
	a.Err.Lines("coppice: " + argument(name) + " is left out: " + why)
}

// getFile copies one file to a path of this machine.
func (a *app) getFile(ctx context.Context, c *client.Client, workspace string, f client.File, to string, m *moved) error {
	if f.Kind == client.FileOther {
		a.leaveOut(f.Path, notRegular, m)
		return nil
	}
	r, err := c.OpenFile(ctx, workspace, f.Path, client.ReadFile{}) // a link within the folder is followed
	if err != nil {
		return err
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, path.Base(f.Path))
	}
	err = file.WriteFrom(to, func(w io.Writer) error {
		n, err := io.Copy(w, r)
		m.Files, m.Bytes = 1, n
		return err
	}, file.WriteOptions{Mode: bits(r.Mode())})
	return errors.Join(err, r.Close())
}

// bits are permission bits as a server writes them; 0 for what are none.
func bits(mode string) fs.FileMode {
	n, err := strconv.ParseUint(mode, 8, 32)
	if err != nil {
		return 0
	}
	return fs.FileMode(n).Perm()
}
