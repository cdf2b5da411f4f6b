package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// path is the notebook that a request names.
func (a *API) path(name string) (string, error) {
	if !notebook.IsPath(name) || strings.ContainsRune(name, 0) {
		return "", badRequest{fmt.Sprintf("%.80q is no path of a notebook", name), "it ends in .ipynb"}
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.o.Cwd, name)
	}
	return filepath.Clean(name), nil
}

func (a *API) showNotebook(w http.ResponseWriter, r *http.Request) {
	var in client.Show
	if !a.body(w, r, &in) {
		return
	}
	out, err := a.shown(r.Context(), in)
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.Answer(w, r, http.StatusOK, out)
}

func (a *API) shown(ctx context.Context, in client.Show) (client.Shown, error) {
	path, err := a.path(in.Path)
	if err != nil {
		return client.Shown{}, err
	}
	selected, err := notebook.ParseSelector(in.Lines)
	if err != nil {
		return client.Shown{}, unfit{err.Error(), ""}
	}
	f, err := notebook.Open(ctx, path)
	if err != nil {
		return client.Shown{}, fileProblem(path, err)
	}
	var text strings.Builder
	for line := range f.Select(selected) {
		text.WriteString(line.Text + "\n")
	}
	return client.Shown{Path: path, Text: text.String(), Cells: f.Len()}, nil
}

// save saves a notebook, and does not wait for ever when someone holds its lock.
func (a *API) save(f *notebook.File) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		ctx, done := opportunity.Within(ctx, opportunity.Budget{Opportunity: a.o.LockWait}, nil)
		defer done()
		written, err := f.Save(ctx)
		return written, fileProblem(f.Path, err)
	}
}

// fileProblem is what the system says about a file that a client named: that it is
// a folder, that its name is too long, that it may not be read.
func fileProblem(path string, err error) error {
	if _, told := errors.AsType[*notebook.Error](err); told || err == nil || errors.Is(err, notebook.ErrNotFound) {
		return err
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("%w: %s: %w", errFile, path, err)
}

func (a *API) applyNotebook(w http.ResponseWriter, r *http.Request) {
	var in client.Apply
	if !a.body(w, r, &in) {
		return
	}
	out, err := a.applied(r.Context(), in)
	if err != nil {
		a.problem(w, err)
		return
	}
	httpserver.Answer(w, r, http.StatusOK, out)
}

func (a *API) applied(ctx context.Context, in client.Apply) (client.Applied, error) {
	path, err := a.path(in.Path)
	if err != nil {
		return client.Applied{}, err
	}
	f, err := notebook.OpenOrNew(ctx, path)
	if err != nil {
		return client.Applied{}, fileProblem(path, err)
	}
	if strings.TrimSpace(in.Text) == "" && f.Len() > 0 {
		return client.Applied{}, unfit{fmt.Sprintf("the text is empty, and would delete all %d cells", f.Len()), "send the whole text"}
	}
	before := f.Clone()
	report, err := f.ApplyText(strings.TrimSuffix(in.Text, "\n"), nil)
	if err != nil {
		return client.Applied{}, err
	}
	out := client.Applied{Cells: len(report.Cells), Deleted: len(report.Deleted), Diff: notebook.Diff(before, f.Document).String()}
	for _, c := range report.Cells {
		switch {
		case c.Was < 0:
			out.New++
		case c.Edited:
			out.Edited++
		}
		if c.Stale {
			out.Stale++
		}
	}
	if !in.DryRun {
		out.Written, err = a.save(f)(ctx)
	}
	return out, err
}

func (a *API) runNotebook(w http.ResponseWriter, r *http.Request) {
	var in client.RunNotebook
	if !a.body(w, r, &in) {
		return
	}
	x, mine, err := a.notebook(r.Context(), in)
	a.begun(w, x, mine, err)
}

// notebook starts the run of a notebook as an execution.
func (a *API) notebook(ctx context.Context, in client.RunNotebook) (*execution, bool, error) {
	path, err := a.path(in.Path)
	if err != nil {
		return nil, false, err
	}
	timeout, err := seconds("timeout_seconds", in.Timeout)
	if err != nil {
		return nil, false, err
	}
	if err := checkName(in.Session); err != nil {
		return nil, false, err
	}
	o := run.Options{Timeout: max(timeout, 0), AllowErrors: in.AllowErrors, Owner: in.Owner}
	if in.Cells != "" {
		if o.Cells, err = notebook.ParseCells(in.Cells); err != nil {
			return nil, false, unfit{err.Error(), ""}
		}
	}
	f, err := notebook.Open(ctx, path)
	if err != nil {
		return nil, false, fileProblem(path, err)
	}
	if in.Save {
		o.Save = a.save(f)
	}
	cwd := in.Cwd
	if in.Workspace == "" {
		cwd = a.key(in.Session, filepath.Dir(path)).In(in.Cwd).Cwd
	}
	session, key, err := a.at(in.Session, cwd, in.Workspace, "")
	if err != nil {
		return nil, false, err
	}
	info := client.Execution{ID: in.ID, Kind: client.KindNotebook, Session: key.Session, Cwd: key.Cwd, Workspace: key.Workspace, Owner: in.Owner, Title: path}
	return a.begin(ctx, info, in, func(ctx context.Context, x *execution, queued func()) (messages.Result, messages.RawJSON, error) {
		o.Progress = func(step run.Step) {
			switch step.Kind {
			case run.Planned:
				queued()
			case run.CellEvent:
				if _, final := step.Event.(messages.Final); !final {
					x.event(step.Event.At(messages.Position{Cell: step.Place}), a.o.Logger)
				}
			case run.CellBegins, run.CellEnded: // the cell's own events say it
			}
		}
		report, err := session.RunNotebook(ctx, f.Document, o)
		if err != nil {
			return report.Last, nil, err
		}
		data, err := json.Marshal(report)
		if err != nil {
			return report.Last, nil, fmt.Errorf("write the report: %w", err)
		}
		result := report.Last
		result.Outcome = report.Outcome
		if report.Reason != "" {
			result.Reason = report.Reason
		}
		return result, data, nil
	})
}
