package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// File is a file that a run has left. Close it.
type File struct {
	io.ReadSeekCloser
	// Name is its name in the folder of the run, with forward slashes.
	Name string
	// ContentType is what the tool says, or what the name does.
	ContentType string
	// ModTime is when it was written, zero when that is not known.
	ModTime time.Time
}

// OpenFile opens a file that a run has left: in its folder for files, or, when
// the tool says in its tool.json that it has them (provides_file_endpoint), one
// that it serves itself at /files/RUN/NAME; then it is started if need be.
// retain_runs says of how many runs the folders are kept. The error is a
// *messages.ToolError when there is no such file, or [ErrClosed].
func (l *Launcher) OpenFile(ctx context.Context, id, run, name string) (*File, error) {
	entry, err := l.box.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	missing := &messages.ToolError{Kind: messages.ToolErrorNotFound, Message: fmt.Sprintf("the run %q of %s has left no file %q", run, id, name)}
	if !toolspec.IsID(run) || !fs.ValidPath(name) || name == "." {
		return nil, missing
	}
	out := &File{Name: name, ContentType: mime.TypeByExtension(path.Ext(name))}
	f, err := l.box.OpenRunFile(entry.ID, run, name)
	switch {
	case err == nil:
		out.ReadSeekCloser = f
		if info, err := f.Stat(); err == nil {
			out.ModTime = info.ModTime()
		}
		return out, nil
	case file.IsNotRegular(err):
		return nil, &messages.ToolError{Kind: messages.ToolErrorNotFound, Message: fmt.Sprintf("of the run %q of %s: %v", run, id, err)}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open a file of the run %s: %w", run, err)
	case !entry.Tool.ProvidesFileEndpoint:
		return nil, missing
	}
	fetched, err := l.fetch(ctx, entry.ID, toolproc.FilePath(run, name))
	if err != nil {
		return nil, err
	}
	if fetched.ContentType != "" {
		out.ContentType = fetched.ContentType
	}
	out.ReadSeekCloser = inMemory{bytes.NewReader(fetched.Data)}
	return out, nil
}

type inMemory struct{ *bytes.Reader }

// Close does nothing.
func (inMemory) Close() error { return nil }

// Autocomplete asks a tool for suggestions for one of its inputs of type
// autocomplete: endpoint is what tool.json names there, text what was typed. The
// tool gets GET /autocomplete/ENDPOINT?q=TEXT, and is started if need be; a tool
// that makes one run at a time is asked between two. What it returns is JSON. The
// error is a *messages.ToolError, or [ErrClosed].
func (l *Launcher) Autocomplete(ctx context.Context, id, endpoint, text string) (messages.RawJSON, error) {
	entry, err := l.box.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	var known []string
	for i := range entry.Tool.Inputs {
		if in := &entry.Tool.Inputs[i]; in.Type == "autocomplete" {
			known = append(known, in.Endpoint)
		}
	}
	if !slices.Contains(known, endpoint) {
		told := &messages.ToolError{Kind: messages.ToolErrorNotFound, Message: fmt.Sprintf("the tool %s has no input with suggestions from %q", id, endpoint)}
		if len(known) > 0 {
			told.Hint = "its tool.json has " + strings.Join(known, ", ")
		}
		return nil, told
	}
	fetched, err := l.fetch(ctx, entry.ID, toolproc.AutocompletePath(endpoint, text))
	if err != nil {
		return nil, err
	}
	if !toolbox.IsJSON(fetched.Data) {
		return nil, &messages.ToolError{Kind: messages.ToolErrorOutput, Message: "the suggestions of " + endpoint + " are not JSON"}
	}
	return fetched.Data, nil
}

// fetch gets something of a tool other than a run.
func (l *Launcher) fetch(ctx context.Context, id, path string) (*messages.ToolFetched, error) {
	r, err := l.run(ctx, Request{Tool: id, fetch: path}, nil)
	switch {
	case err != nil:
		return nil, err
	case r.Error != nil:
		return nil, r.Error
	default:
		return r.Fetched, nil
	}
}
