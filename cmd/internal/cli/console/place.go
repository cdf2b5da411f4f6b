package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/internal/home"
)

// CheckPlace is for a command that serves others: that --cwd is no folder, or --python no Python,
// is said to whoever starts it, and not to each of its clients. "" is right, and an interpreter is
// not run where COPPICE_PYTHON_SKIP_CHECK takes it for granted. The error is a UsageError.
func (c *Console) CheckPlace(ctx context.Context, python, cwd string) error {
	if cwd != "" {
		if _, err := home.WorkingDir(cwd); err != nil {
			return UsageError{fmt.Errorf("--cwd: %w", err)}
		}
	}
	if err := CheckPython(python); err != nil || python == "" || home.SwitchedOn(c.Env, "PI_PYTHON_SKIP_CHECK") {
		return err
	}
	_, err := environment.Find(ctx, environment.Options{Python: python, Env: c.Env})
	// What was ended from outside, or found no processor, may well be a Python.
	if none, is := errors.AsType[*environment.NoPythonError](err); is && !none.Disturbed {
		return Usagef("--python: %w; coppice env shows which Python there is", err)
	}
	return nil
}
