package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a module that is linked.
type Module struct {
	// Path and Version are as in go.mod; those of the standard library are "std" and that
	// of the toolchain.
	Path, Version string
	// Licences are its texts, at least one.
	Licences []Licence
}

// Licence is a file of a module.
type Licence struct {
	// Name is its path in the module, with slashes.
	Name string
	// Kind is the SPDX identifier of a licence, "NOTICE" for a file that has to come along
	// with one.
	Kind string
	Text string
}

// Bundled returns the packages of npm that a bundle of the live view has, from the file that
// its build writes.
func Bundled(file string) ([]Module, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what is bundled: %w", err)
	}
	var list []struct {
		Name, Version string
		Licences      []struct{ Name, Text string }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read what is bundled, in %s: %w", file, err)
	}
	var all []Module
	for _, p := range list {
		m := Module{Path: p.Name + " (npm)", Version: "v" + p.Version}
		for _, l := range p.Licences {
			kind, err := KindOf(l.Text)
			if err != nil {
				return nil, fmt.Errorf("%s of %s@%s: %w", l.Name, p.Name, p.Version, err)
			}
			m.Licences = append(m.Licences, Licence{Name: l.Name, Kind: kind, Text: strings.TrimSpace(l.Text)})
		}
		if len(m.Licences) == 0 {
			return nil, fmt.Errorf("%s@%s has no licence", p.Name, p.Version)
		}
		all = append(all, m)
	}
	return all, nil
}

// linked is a package as go list describes it.
type linked struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// systems are those that a release is made for.
var systems = []string{"linux", "darwin", "windows"}

// Modules returns the modules that a package of the module in dir links, on any system,
// sorted by path. It runs the go command, which may download modules.
func Modules(ctx context.Context, dir, pkg string) ([]Module, error) {
	found := map[string]*Module{}
	for _, system := range systems {
		list, err := packages(ctx, dir, pkg, system)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if p.Standard || p.Module == nil || p.Module.Main {
				continue
			}
			m := found[p.Module.Path]
			if m == nil {
				m = &Module{Path: p.Module.Path, Version: p.Module.Version}
				found[m.Path] = m
			}
			if err := m.add(p.Module.Dir, p.Dir); err != nil {
				return nil, err
			}
		}
	}
	var all []Module
	for _, m := range found {
		if !slices.ContainsFunc(m.Licences, func(l Licence) bool { return l.Kind != aNotice }) {
			return nil, fmt.Errorf("%s@%s has no licence", m.Path, m.Version)
		}
		slices.SortFunc(m.Licences, func(a, b Licence) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func packages(ctx context.Context, dir, pkg, system string) ([]linked, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Dir,Standard,Module", pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list what %s links on %s: %w: %s", pkg, system, err, stderr.Bytes())
	}
	var list []linked
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p linked
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		list = append(list, p)
	}
}

// add takes the licences of a folder of a module, and of those above it.
func (m *Module) add(root, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("look for the licence of %s: %w", m.Path, err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !named(e.Name()) {
				continue
			}
			file := filepath.Join(dir, e.Name())
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return fmt.Errorf("look for the licence of %s: %w", m.Path, err)
			}
			if name := filepath.ToSlash(rel); !slices.ContainsFunc(m.Licences, func(l Licence) bool { return l.Name == name }) {
				l, err := read(file, name)
				if err != nil {
					return fmt.Errorf("the licence of %s@%s: %w", m.Path, m.Version, err)
				}
				m.Licences = append(m.Licences, l)
			}
		}
		if dir == root || len(dir) <= len(root) {
			return nil
		}
	}
}

// named reports whether a file of this name is a licence, or has to come along with one.
func named(name string) bool {
	if strings.HasSuffix(name, ".go") {
		return false
	}
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	for _, word := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE"} {
		if stem == word || strings.HasPrefix(stem, word+"-") || strings.HasPrefix(stem, word+"_") {
			return true
		}
	}
	return false
}

// aNotice is the kind of a file that is no licence.
const aNotice = "NOTICE"

func read(file, name string) (Licence, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Licence{}, err
	}
	l := Licence{Name: name, Text: strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))}
	// A table, LICENSE-3rdparty.csv, names what the licences of others are of.
	if strings.HasPrefix(strings.ToUpper(filepath.Base(file)), aNotice) || filepath.Ext(file) == ".csv" {
		l.Kind = aNotice
		return l, nil
	}
	l.Kind, err = KindOf(l.Text)
	if err != nil {
		return l, fmt.Errorf("%s: %w", name, err)
	}
	return l, nil
}

// ErrKind is matched by a licence that is not among those that may be linked.
var ErrKind = errors.New("the licence is none that is known to go with ours")

// KindOf returns the SPDX identifier of the licence that a text is. The error matches
// ErrKind when it is another one than those that a program under the MIT licence links
// without further duties: someone has to read it.
func KindOf(text string) (string, error) {
	// However it is broken into lines.
	text = strings.Join(strings.Fields(text), " ")
	has := func(phrase string) bool { return strings.Contains(text, phrase) }
	switch {
	case has("GNU GENERAL PUBLIC LICENSE"), has("GNU AFFERO"), has("GNU LESSER"), has("Mozilla Public License"), has("Business Source License"):
		return "", ErrKind
	case has("Apache License") && has("Version 2.0"), has("http://www.apache.org/licenses/LICENSE-2.0"):
		return "Apache-2.0", nil
	case has("Permission is hereby granted, free of charge"):
		return "MIT", nil
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors may") || has("may not be used to endorse")):
		return "BSD-3-Clause", nil
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause", nil
	case has("Permission to use, copy, modify, and/or distribute this software"), has("Permission to use, copy, modify, and distribute this software"):
		return "ISC", nil
	}
	return "", ErrKind
}

// Text is the file that comes along with the program: a table of the modules, and each
// text once, with the modules that it is of.
func Text(modules []Module) string {
	var b strings.Builder
	b.WriteString("Coppice\nCopyright (c) 2026 The Coppice authors\n\n")
	b.WriteString("The command coppice is built of the modules below, of Go's standard library, and for its\nlive view of packages of npm. Their licences follow.\n\n")
	var texts []string
	of := map[string][]string{}
	for _, m := range modules {
		var kinds []string
		for _, l := range m.Licences {
			if l.Kind != aNotice && !slices.Contains(kinds, l.Kind) {
				kinds = append(kinds, l.Kind)
			}
			if of[l.Text] == nil {
				texts = append(texts, l.Text)
			}
			of[l.Text] = append(of[l.Text], m.Path+" ("+l.Name+")")
		}
		slices.Sort(kinds)
		fmt.Fprintf(&b, "%s %s: %s\n", m.Path, m.Version, strings.Join(kinds, ", "))
	}
	for _, text := range texts {
		b.WriteString("\n" + strings.Repeat("=", 78) + "\n")
		for _, who := range of[text] {
			b.WriteString(who + "\n")
		}
		b.WriteString(strings.Repeat("-", 78) + "\n" + text + "\n")
	}
	return b.String()
}
