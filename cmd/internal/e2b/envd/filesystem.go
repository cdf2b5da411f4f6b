package envd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem"
	"github.com/coppice-run/coppice/cmd/internal/e2b/wire/filesystem/filesystemconnect"
	"github.com/coppice-run/coppice/workspace/files"
)

// filesystemService is the service filesystem of a sandbox.
type filesystemService Sandbox

var _ filesystemconnect.FilesystemHandler = (*filesystemService)(nil)

// at resolves a path of a client, and returns the folder that it is in.
func (s *filesystemService) at(name string) (*files.Folder, string, error) {
	at, err := (*Sandbox)(s).within(name)
	if err != nil {
		return nil, "", err
	}
	f, err := s.w.Files()
	return f, at, err
}

// entry describes what stands at a path.
func (s *filesystemService) entry(f *files.Folder, i files.Info) *filesystem.EntryInfo {
	full := (*Sandbox)(s).full(i.Path)
	mode := i.Mode
	switch i.Kind {
	case files.KindDirectory:
		mode |= fs.ModeDir
	case files.KindLink:
		mode |= fs.ModeSymlink
	case files.KindFile, files.KindOther:
	}
	e := &filesystem.EntryInfo{
		Name: filepath.Base(full), Path: full, Size: i.Size + i.Listed, Mode: uint32(i.Mode.Perm()), Permissions: mode.String(),
		Owner: self().name, Group: self().group, ModifiedTime: timestamppb.New(i.Modified), Type: typeOf(i.Kind),
	}
	if i.Kind == files.KindFile {
		e.Metadata = metadata(f, i.Path)
	}
	if i.Kind == files.KindLink {
		e.IsSymlink, e.SymlinkTarget = true, &i.Target
		if target, err := follow(f, i); err == nil {
			at := (*Sandbox)(s).full(target.Path)
			e.Type, e.Size, e.SymlinkTarget = typeOf(target.Kind), target.Size+target.Listed, &at
		}
	}
	return e
}

// maxLinks is how many symbolic links are followed for one description.
const maxLinks = 16

// follow describes what a symbolic link leads to, within the folder.
func follow(f *files.Folder, i files.Info) (files.Info, error) {
	for range maxLinks {
		if path.IsAbs(i.Target) {
			return i, files.ErrOutside
		}
		next, err := f.Stat(path.Join(path.Dir(i.Path), i.Target))
		if err != nil || next.Kind != files.KindLink {
			return next, err
		}
		i = next
	}
	return i, files.ErrPath
}

func typeOf(k files.Kind) filesystem.FileType {
	switch k {
	case files.KindFile:
		return filesystem.FileType_FILE_TYPE_FILE
	case files.KindDirectory:
		return filesystem.FileType_FILE_TYPE_DIRECTORY
	case files.KindLink:
		return filesystem.FileType_FILE_TYPE_SYMLINK
	case files.KindOther:
	}
	return filesystem.FileType_FILE_TYPE_UNSPECIFIED
}

// Stat describes what stands at a path.
func (s *filesystemService) Stat(_ context.Context, r *connect.Request[filesystem.StatRequest]) (*connect.Response[filesystem.StatResponse], error) {
	f, at, err := s.at(r.Msg.GetPath())
	if err != nil {
		return nil, failed(err)
	}
	i, err := f.Stat(at)
	if err != nil {
		return nil, failed(err)
	}
	return connect.NewResponse(&filesystem.StatResponse{Entry: s.entry(f, i)}), nil
}

// MakeDir makes a directory; one that is there is an error.
func (s *filesystemService) MakeDir(_ context.Context, r *connect.Request[filesystem.MakeDirRequest]) (*connect.Response[filesystem.MakeDirResponse], error) {
	f, at, err := s.at(r.Msg.GetPath())
	if err != nil {
		return nil, failed(err)
	}
	switch i, err := f.Stat(at); {
	case err == nil && i.Kind == files.KindDirectory:
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("the directory %s is there already", r.Msg.GetPath()))
	case err == nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("there is something else than a directory at %s", r.Msg.GetPath()))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, failed(err)
	}
	i, err := f.MakeDir(at, 0)
	if err != nil {
		return nil, failed(err)
	}
	return connect.NewResponse(&filesystem.MakeDirResponse{Entry: s.entry(f, i)}), nil
}

// Move gives something another name, and makes the directories that are missing there.
func (s *filesystemService) Move(_ context.Context, r *connect.Request[filesystem.MoveRequest]) (*connect.Response[filesystem.MoveResponse], error) {
	f, from, err := s.at(r.Msg.GetSource())
	if err != nil {
		return nil, failed(err)
	}
	to, err := (*Sandbox)(s).within(r.Msg.GetDestination())
	if err != nil {
		return nil, failed(err)
	}
	if _, err := f.Stat(from); err != nil {
		return nil, failed(err)
	}
	if parent := path.Dir(to); parent != "." {
		if _, err := f.MakeDir(parent, 0); err != nil {
			return nil, failed(err)
		}
	}
	i, err := f.Move(from, to, files.MoveOptions{Replace: true})
	if err != nil {
		return nil, failed(err)
	}
	return connect.NewResponse(&filesystem.MoveResponse{Entry: s.entry(f, i)}), nil
}

// ListDir lists a directory.
func (s *filesystemService) ListDir(ctx context.Context, r *connect.Request[filesystem.ListDirRequest]) (*connect.Response[filesystem.ListDirResponse], error) {
	f, at, err := s.at(r.Msg.GetPath())
	if err != nil {
		return nil, failed(err)
	}
	if err := directory(f, at); err != nil {
		return nil, failed(err)
	}
	list, more, err := f.List(ctx, at, files.ListOptions{Depth: int(min(r.Msg.GetDepth(), 1<<20))})
	if err != nil {
		return nil, failed(err)
	}
	if more {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("there are more than %d entries; list a directory below, or less deep", files.DefaultMost))
	}
	out := make([]*filesystem.EntryInfo, len(list))
	for i, one := range list {
		out[i] = s.entry(f, one)
	}
	return connect.NewResponse(&filesystem.ListDirResponse{Entries: out}), nil
}

// directory says what is wrong with a path that has to be one of a directory.
func directory(f *files.Folder, at string) error {
	i, err := f.Stat(at)
	if err == nil && i.Kind == files.KindLink {
		i, err = follow(f, i)
	}
	if err == nil && i.Kind != files.KindDirectory {
		err = &files.Error{Op: "list", Path: at, Err: files.ErrNotDir}
	}
	return err
}

// Remove removes what stands at a path; what is not there is gone already.
func (s *filesystemService) Remove(_ context.Context, r *connect.Request[filesystem.RemoveRequest]) (*connect.Response[filesystem.RemoveResponse], error) {
	f, at, err := s.at(r.Msg.GetPath())
	if err != nil {
		return nil, failed(err)
	}
	if err := f.Remove(at, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed(err)
	}
	return connect.NewResponse(&filesystem.RemoveResponse{}), nil
}
