package pyenv

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/file"
)

//go:embed modules.py
var modulesScript string

// Bounds of the modules of one session.
const (
	maxModule  = 1 << 20 // bytes of one
	maxModules = 200
	maxKept    = 64 << 20 // bytes of what is kept of all of them
)

// Module is a file of the user's that every session loads.
type Module struct {
	Path string `json:"path"`
	// Text is its source, "" with a Problem.
	Text string `json:"-"`
	// Problem says why it cannot be loaded, as far as that is known without running
	// it.
	Problem string `json:"problem,omitempty"`
}

// ModuleFunction is a function that a module offers: a public one of its top
// level.
type ModuleFunction struct {
	Name      string `json:"name"`
	Signature string `json:"signature"`
	Docstring string `json:"docstring"`
	Category  string `json:"category"`
}

// Modules finds the .py files of the user's folder and the project's. A file of
// the project takes the place of one of the user's with the same name. They come
// sorted by file name. A folder that does not exist holds none; links, folders and
// other files are passed over. A file that cannot be read has a Problem.
func Modules(user, project string) []Module {
	byName := map[string]string{}
	for _, dir := range []string{user, project} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".py") && e.Type().IsRegular() {
				byName[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	var found []Module
	for i, name := range names {
		m := Module{Path: byName[name]}
		if i >= maxModules {
			m.Problem = fmt.Sprintf("there are more than %d modules", maxModules)
			found = append(found, m)
			break
		}
		m.Text, m.Problem = readModule(m.Path)
		found = append(found, m)
	}
	return found
}

func readModule(path string) (text, problem string) {
	data, err := file.Read(context.Background(), path, maxModule)
	if file.IsTooLarge(err) {
		return "", fmt.Sprintf("it has more than %d bytes", maxModule)
	}
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return "", fmt.Sprintf("it cannot be read: %v", err)
	}
	if !utf8.Valid(data) {
		return "", "it is not UTF-8"
	}
	return strings.TrimPrefix(string(data), "\ufeff"), ""
}

// described is what modules.py answers, and what is kept.
type described struct {
	Functions []ModuleFunction  `json:"functions"`
	Problems  map[string]string `json:"problems"`
}

// DescribeModules lists the functions that modules offer, by reading them with an
// interpreter that runs nothing of them, and returns the modules with the problems
// that show in doing so. What it found is kept in cache, a folder, under a hash of
// what was read. find is asked for the interpreter when that is needed.
func DescribeModules(ctx context.Context, cache string, modules []Module, find func(context.Context) (Runtime, error)) ([]ModuleFunction, []Module, error) {
	if len(modules) == 0 {
		return nil, nil, nil
	}
	kept := filepath.Join(cache, hashModules(modules)+".json")
	var d described
	if data, err := file.Read(ctx, kept, maxKept); err != nil || json.Unmarshal(data, &d) != nil {
		rt, err := find(ctx)
		if err != nil {
			return nil, modules, err
		}
		if d, err = describe(ctx, rt, modules); err != nil {
			return nil, modules, err
		}
		_ = keep(cache, kept, d) // it is found again without
	}
	all := slices.Clone(modules)
	for i := range all {
		if p := d.Problems[all[i].Path]; p != "" && all[i].Problem == "" {
			all[i].Problem = p
		}
	}
	return d.Functions, all, nil
}

// hashModules is the name of what is kept: of the script too, which may change.
func hashModules(modules []Module) string {
	h := sha256.New()
	for _, part := range append([]string{modulesScript}, flat(modules)...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func flat(modules []Module) []string {
	var parts []string
	for _, m := range modules {
		parts = append(parts, m.Path, m.Text, m.Problem)
	}
	return parts
}

func describe(ctx context.Context, rt Runtime, modules []Module) (described, error) {
	args := []string{"-c", modulesScript}
	for _, m := range modules {
		if m.Problem == "" {
			args = append(args, m.Path)
		}
	}
	out, err := run(ctx, command{python: rt.Path, args: args, env: rt.Env})
	if err != nil {
		return described{}, fmt.Errorf("ask %s what modules offer: it %w", rt.Path, err)
	}
	d := described{Problems: map[string]string{}}
	for line := range strings.Lines(out) {
		text, ok := strings.CutPrefix(line, "coppice-module ")
		if !ok {
			continue
		}
		var one struct {
			Path, Problem string
			Functions     []ModuleFunction
		}
		if json.Unmarshal([]byte(text), &one) != nil {
			continue
		}
		if one.Problem != "" {
			d.Problems[one.Path] = one.Problem
		}
		d.Functions = append(d.Functions, one.Functions...)
	}
	return d, nil
}

// keep writes what was found, in place of what was kept before.
func keep(dir, path string, d described) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	old, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(old) > maxModules { // of modules that were changed since, mostly
		for _, f := range old {
			_ = os.Remove(f)
		}
	}
	return file.Write(path, data, file.WriteOptions{})
}
