package notice_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/test/notice"
)

var update = flag.Bool("update", false, "write NOTICE")

// TestNoticeIsComplete holds NOTICE against what is linked.
func TestNoticeIsComplete(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	modules, err := notice.Modules(t.Context(), root, "./cmd/coppice")
	require.NoError(t, err)
	modules = append(modules, standard(t))
	bundled, err := notice.Bundled(filepath.Join(root, "cmd", "internal", "liveview", "bundle", "licences.json"))
	require.NoError(t, err)
	modules = append(modules, bundled...)
	want, file := notice.Text(modules), filepath.Join(root, "NOTICE")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644)) //nolint:gosec // it is for everyone
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, strings.ReplaceAll(string(got), "\r\n", "\n")), "run go test ./test/notice -update, and read the difference")
}

// standard is Go's standard library, whose licence does not depend on the version.
func standard(t *testing.T) notice.Module {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "LICENSE"))
	require.NoError(t, err)
	kind, err := notice.KindOf(string(text))
	require.NoError(t, err)
	return notice.Module{Path: "std", Version: "(Go's standard library)", Licences: []notice.Licence{{Name: "LICENSE", Kind: kind, Text: strings.TrimSpace(string(text))}}}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby\ngranted, free of charge, to any person": "MIT",
		"Apache License\nVersion 2.0, January 2004":                                   "Apache-2.0",
		"Redistribution and use in source and\nbinary forms ... Neither the name of":  "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with":                     "BSD-2-Clause",
		"Permission to use, copy, modify, and/or distribute this software for":        "ISC",
	} {
		kind, err := notice.KindOf(text)
		require.NoError(t, err, text)
		require.Equal(t, want, kind)
	}
	for _, text := range []string{"", "All rights reserved.", "GNU GENERAL PUBLIC LICENSE Version 3", "GNU LESSER GENERAL PUBLIC LICENSE", "Mozilla Public License Version 2.0"} {
		_, err := notice.KindOf(text)
		require.ErrorIs(t, err, notice.ErrKind, text)
	}
}

// Each text stands there once, with all that it is of.
func TestText(t *testing.T) {
	t.Parallel()
	same := notice.Licence{Name: "LICENSE", Kind: "MIT", Text: "the text"}
	text := notice.Text([]notice.Module{
		{Path: "a", Version: "v1", Licences: []notice.Licence{same, {Name: "NOTICE", Kind: "NOTICE", Text: "made by a"}}},
		{Path: "b", Version: "v2", Licences: []notice.Licence{same}},
	})
	require.Equal(t, 1, strings.Count(text, "the text"))
	require.Contains(t, text, "a v1: MIT\nb v2: MIT\n")
	require.Contains(t, text, "\na (LICENSE)\nb (LICENSE)\n---")
	require.Contains(t, text, "\na (NOTICE)\n---")
	require.Contains(t, text, "made by a\n")
}

// A package that is bundled has a licence that is known.
func TestBundled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "licences.json")
	for text, want := range map[string]string{
		`[{"name": "a", "version": "1.0.0", "licences": []}]`:                                                          "a@1.0.0 has no licence",
		`[{"name": "a", "version": "1.0.0", "licences": [{"name": "LICENSE", "text": "GNU GENERAL PUBLIC LICENSE"}]}]`: "LICENSE of a@1.0.0",
		`[{`: "read what is bundled, in",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := notice.Bundled(file)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.WriteFile(file, []byte(`[{"name": "@a/b", "version": "1.0.0", "licences": [{"name": "LICENSE", "text": "Permission is hereby granted, free of charge"}]}]`), 0o600))
	list, err := notice.Bundled(file)
	require.NoError(t, err)
	require.Equal(t, []notice.Module{{Path: "@a/b (npm)", Version: "v1.0.0", Licences: []notice.Licence{{Name: "LICENSE", Kind: "MIT", Text: "Permission is hereby granted, free of charge"}}}}, list)
}

// A module without a licence is an error.
func TestAModuleWithoutALicence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/program\n\ngo 1.26\n\nrequire example.com/part v0.0.0\n\nreplace example.com/part => ./part\n")
	write("main.go", "package main\n\nimport _ \"example.com/part/sub\"\n\nfunc main() {}\n")
	write("part/go.mod", "module example.com/part\n\ngo 1.26\n")
	write("part/sub/sub.go", "package sub\n")
	_, err := notice.Modules(t.Context(), dir, ".")
	require.ErrorContains(t, err, "example.com/part@v0.0.0 has no licence")
	write("part/NOTICE", "made by a")
	_, err = notice.Modules(t.Context(), dir, ".")
	require.ErrorContains(t, err, "has no licence")
	write("part/LICENSE", "Permission is hereby granted, free of charge")
	write("part/sub/COPYING.txt", "Apache License Version 2.0")
	modules, err := notice.Modules(t.Context(), dir, ".")
	require.NoError(t, err)
	require.Equal(t, []notice.Module{{Path: "example.com/part", Version: "v0.0.0", Licences: []notice.Licence{
		{Name: "LICENSE", Kind: "MIT", Text: "Permission is hereby granted, free of charge"},
		{Name: "NOTICE", Kind: "NOTICE", Text: "made by a"},
		{Name: "sub/COPYING.txt", Kind: "Apache-2.0", Text: "Apache License Version 2.0"},
	}}}, modules)
	write("part/LICENSE", "GNU GENERAL PUBLIC LICENSE")
	_, err = notice.Modules(t.Context(), dir, ".")
	require.ErrorIs(t, err, notice.ErrKind)
}
