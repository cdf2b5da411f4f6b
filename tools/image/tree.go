package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file, a folder or a link of a layer.
type entry struct {
	kind     byte // of package tar
	mode     int64
	uid, gid int
	to       string // of a link
	data     []byte
}

// tree is what becomes a layer, by the path without a slash before it.
type tree struct {
	epoch   time.Time
	entries map[string]entry
}

func (b build) tree() *tree { return &tree{epoch: b.epoch, entries: map[string]entry{}} }

// folder adds a folder, and those above it.
func (t *tree) folder(name string, mode int64) {
	name = strings.Trim(name, "/")
	if above := path.Dir(name); above != "." {
		if _, there := t.entries[above]; !there {
			t.folder(above, 0o755)
		}
	}
	t.entries[name] = entry{kind: tar.TypeDir, mode: mode}
}

// file adds a file, and the folders above it.
func (t *tree) file(name string, mode int64, data []byte) {
	name = strings.Trim(name, "/")
	if _, there := t.entries[path.Dir(name)]; !there {
		t.folder(path.Dir(name), 0o755)
	}
	t.entries[name] = entry{kind: tar.TypeReg, mode: mode, data: data}
}

// link adds a symbolic link.
func (t *tree) link(name, to string) {
	name = strings.Trim(name, "/")
	if _, there := t.entries[path.Dir(name)]; !there {
		t.folder(path.Dir(name), 0o755)
	}
	t.entries[name] = entry{kind: tar.TypeSymlink, mode: 0o777, to: to}
}

// owned gives an entry to the user of the image.
func (t *tree) owned(name string) {
	name = strings.Trim(name, "/")
	e := t.entries[name]
	e.uid, e.gid = user, user
	t.entries[name] = e
}

// archive adds the entries of a tar for which keep says so.
func (t *tree) archive(name string, keep func(name string) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	for files := tar.NewReader(f); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		at := strings.Trim(path.Clean("/"+h.Name), "/")
		if at == "" || !keep(at) {
			continue
		}
		e := entry{kind: h.Typeflag, mode: h.Mode & 0o1777, uid: h.Uid, gid: h.Gid} // no program gives its user more rights
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeSymlink:
			e.to = h.Linkname
		case tar.TypeLink:
			of, there := t.entries[strings.Trim(path.Clean("/"+h.Linkname), "/")]
			if !there {
				return fmt.Errorf("%s of %s is a link to %s, which is not there", at, name, h.Linkname)
			}
			e = of
		case tar.TypeReg:
			if e.data, err = io.ReadAll(files); err != nil {
				return fmt.Errorf("read %s of %s: %w", at, name, err)
			}
		default: // devices: a runtime makes those that a container has
			continue
		}
		t.entries[at] = e
	}
}

// copied adds a folder of this machine below a name, but what skip names.
func (t *tree) copied(from, to string, skip func(name string) bool) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, at)
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case skip(name) && d.IsDir():
			return fs.SkipDir
		case skip(name), d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", at)
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		t.file(path.Join(to, filepath.ToSlash(name)), mode, data)
		return nil
	})
}

// bytecode adds what was compiled of sources that are the same here: from is the place
// of the tree's root below compiled.
func (t *tree) bytecode(compiled, tag string) error {
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[name]
		if e.kind != tar.TypeReg || path.Ext(name) != ".py" {
			continue
		}
		cache := path.Join(path.Dir(name), "__pycache__", strings.TrimSuffix(path.Base(name), ".py")+"."+tag+".pyc")
		source, err := os.ReadFile(filepath.Join(compiled, name))
		if err != nil || !bytes.Equal(source, e.data) {
			continue // it is for another architecture: Python reads the source
		}
		data, err := os.ReadFile(filepath.Join(compiled, cache))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is no Python of this version, as templates are
		}
		if err != nil {
			return err
		}
		t.file(cache, 0o644, data)
	}
	return nil
}

// layer is the tree as a layer.
func (t *tree) layer() (v1.Layer, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	files := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[name]
		h := &tar.Header{Typeflag: e.kind, Name: name, Linkname: e.to, Mode: e.mode, Uid: e.uid, Gid: e.gid, Size: int64(len(e.data)), ModTime: t.epoch, Format: tar.FormatPAX}
		if e.kind == tar.TypeDir {
			h.Name += "/"
		}
		if err := files.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := files.Write(e.data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}
