package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/notebook"
)

// What is listed and read of notebooks as resources.
const (
	notebookScheme = "notebook://"
	maxNotebooks   = 1000
	maxNotebook    = 256 << 20 // bytes of a file
)

// addNotebooks serves the notebooks of the working directory as resources: those
// right in it are listed, and those below are read.
func (s *server) addNotebooks(m *mcp.Server) {
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "notebook", Title: "Notebook", URITemplate: notebookScheme + "{+path}", MIMEType: "text/plain",
		Description: "The text of a notebook (.ipynb) in the working directory, up to 1 MiB; notebook_read reads any part, and outputs.",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		text, err := s.readNotebook(ctx, r.Params.URI)
		if err != nil {
			return nil, err
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: text}}}, nil
	})
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, err := next(ctx, method, req)
			if list, ok := r.(*mcp.ListResourcesResult); ok && err == nil && list.NextCursor == "" {
				list.Resources = append(list.Resources, s.listNotebooks()...)
			}
			return r, err
		}
	})
}

// root is the working directory, out of which no path of a notebook leads.
func (s *server) root() (*os.Root, error) {
	dir := s.o.Cwd
	if dir == "" {
		dir = "."
	}
	return file.OpenRoot(dir)
}

func (s *server) listNotebooks() []*mcp.Resource {
	root, err := s.root()
	if err != nil {
		s.o.Logger.Warn("list notebooks", "err", err)
		return nil
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), "*")
	if err != nil {
		s.o.Logger.Warn("list notebooks", "err", err)
	}
	var all []*mcp.Resource
	for _, name := range names {
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() && notebook.IsPath(name) && len(all) < maxNotebooks {
			all = append(all, &mcp.Resource{Name: name, URI: notebookScheme + url.PathEscape(name), MIMEType: "text/plain"})
		}
	}
	return all
}

// readNotebook is the text of a notebook.
func (s *server) readNotebook(ctx context.Context, uri string) (string, error) {
	path, err := url.PathUnescape(strings.TrimPrefix(uri, notebookScheme))
	path = filepath.FromSlash(path)
	if err != nil || !notebook.IsPath(path) || !filepath.IsLocal(path) {
		return "", mcp.ResourceNotFoundError(uri)
	}
	root, err := s.root()
	if err != nil {
		return "", fmt.Errorf("open the working directory: %w", err)
	}
	defer root.Close()
	f, err := file.OpenIn(root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", mcp.ResourceNotFoundError(uri)
	} else if err != nil {
		return "", fmt.Errorf("read %s: %w", uri, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := file.ReadAll(ctx, f, maxNotebook)
	if file.IsTooLarge(err) {
		err = errors.New("the file is larger than 256 MiB; the tool notebook_read reads it")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", uri, err)
	}
	d, err := notebook.Parse(b)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", uri, err)
	}
	text := d.Text()
	if len(text) > maxResource {
		text = strings.ToValidUTF8(text[:maxResource], "") + "\n[cut: notebook_read reads on]\n"
	}
	return text, nil
}
