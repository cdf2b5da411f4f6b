package envd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"

	"github.com/coppice-run/coppice/cmd/internal/e2b/answer"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/files"
)

// Home is what E2B's clients call the home of a sandbox. Here, it is the folder of the
// workspace.
const Home = "/home/user"

// Within returns a path of a client as one of the folder, with slashes, "." for the folder
// itself. The error matches files.ErrOutside: the path leads out of it.
func Within(folder, name string) (string, error) {
	given := name
	if name == "~" || strings.HasPrefix(name, "~/") {
		name = "." + name[1:]
	}
	if !path.IsAbs(name) && !filepath.IsAbs(name) {
		return path.Clean("./" + name), nil // ".." at its beginning is for package files to refuse
	}
	name = path.Clean(filepath.ToSlash(name))
	for _, root := range []string{filepath.ToSlash(folder), Home} {
		if name == root {
			return ".", nil
		}
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); ok {
			return rest, nil
		}
	}
	return "", &files.Error{Op: "find", Path: given, Err: fmt.Errorf("%w, which is the home of the sandbox: %s; use a relative path, or one of a process", files.ErrOutside, folder)}
}

// within is Within of the sandbox's folder.
func (s *Sandbox) within(name string) (string, error) { return Within(s.w.Folder(), name) }

// full is the true path of one in the folder.
func (s *Sandbox) full(at string) string { return filepath.Join(s.w.Folder(), filepath.FromSlash(at)) }

// class is what kind of failure an error is, in both forms that clients understand.
func class(err error) (connect.Code, int) {
	_, ended := errors.AsType[*workspace.EndedError](err)
	_, options := errors.AsType[*workspace.OptionsError](err)
	switch {
	case ended, errors.Is(err, files.ErrClosed):
		return connect.CodeUnavailable, http.StatusBadGateway
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled, 499
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded, http.StatusGatewayTimeout
	case errors.Is(err, files.ErrQuota), errors.Is(err, files.ErrNoSpace), errors.Is(err, workspace.ErrNoPlace):
		return connect.CodeResourceExhausted, http.StatusInsufficientStorage
	case errors.Is(err, files.ErrAttributes):
		return connect.CodeUnimplemented, http.StatusNotImplemented
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, workspace.ErrUnknownProcess):
		return connect.CodeNotFound, http.StatusNotFound
	case errors.Is(err, fs.ErrExist):
		return connect.CodeAlreadyExists, http.StatusConflict
	case errors.Is(err, fs.ErrPermission):
		return connect.CodePermissionDenied, http.StatusForbidden
	case options, errors.Is(err, files.ErrOutside), errors.Is(err, files.ErrPath), errors.Is(err, files.ErrIsDir), errors.Is(err, files.ErrNotDir),
		errors.Is(err, files.ErrLink), errors.Is(err, files.ErrNotEmpty), file.IsNotRegular(err):
		return connect.CodeInvalidArgument, http.StatusBadRequest
	default:
		return connect.CodeInternal, http.StatusInternalServerError
	}
}

// failed is an error for a client of a service.
func failed(err error) *connect.Error {
	if already, ok := errors.AsType[*connect.Error](err); ok {
		return already
	}
	code, _ := class(err)
	if code == connect.CodeUnavailable {
		return connect.NewError(code, errors.New(answer.Gone))
	}
	return connect.NewError(code, err)
}

// refuse answers a request for a file with an error.
func (s *Sandbox) refuse(w http.ResponseWriter, err error) {
	_, status := class(err)
	if status == http.StatusBadGateway {
		answer.Ended(w, s.w.Name())
		return
	}
	answer.Error(w, status, err.Error())
}
