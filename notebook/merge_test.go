package notebook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

func TestMergeText(t *testing.T) {
	t.Parallel()
	const collision = "<<<<<<< ours\n%s\n=======\n%s\n>>>>>>> theirs"
	for _, tt := range []struct {
		name, base, ours, theirs, want string
		collided                       bool
	}{
		{"nothing", "a", "a", "a", "a", false},
		{"ours", "a", "b", "a", "b", false},
		{"theirs", "a", "a", "b", "b", false},
		{"both alike", "a", "b", "b", "b", false},
		{"both apart", "1\n2\n3\n4\n5", "one\n2\n3\n4\n5", "1\n2\n3\n4\nfive", "one\n2\n3\n4\nfive", false},
		{"insert and delete", "1\n2\n3\n4", "0\n1\n2\n3\n4", "1\n2\n4", "0\n1\n2\n4", false},
		{"same line", "1\n2\n3", "1\nA\n3", "1\nB\n3", "1\n<<<<<<< ours\nA\n=======\nB\n>>>>>>> theirs\n3", true},
		{"at the end", "1\n", "1\nA", "1\nB", "1\n<<<<<<< ours\nA\n=======\nB\n>>>>>>> theirs", true},
		{"final newline and a line", "1\n2\n3", "one\n2\n3", "1\n2\n3\n", "one\n2\n3\n", false},
		{"from nothing", "", "a", "b", strings.NewReplacer("%s\n=", "a\n=", "%s\n>", "b\n>").Replace(collision), true},
		{"delete and change", "1\n2\n3", "1\n3", "1\nB\n3", "1\n<<<<<<< ours\n=======\nB\n>>>>>>> theirs\n3", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, collided := notebook.MergeText(tt.base, tt.ours, tt.theirs)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.collided, collided)
		})
	}
}

// merge applies two edits to copies of a base and merges them.
func merge(t require.TestingT, base *notebook.Document, ours, theirs func(*notebook.Document)) (*notebook.Document, []notebook.Conflict) {
	a, b := base.Clone(), base.Clone()
	ours(a)
	theirs(b)
	baseText, oursText, theirsText := string(base.Bytes()), string(a.Bytes()), string(b.Bytes())
	merged, conflicts := notebook.Merge(base, a, b, nil)
	require.Equal(t, []string{baseText, oursText, theirsText}, []string{string(base.Bytes()), string(a.Bytes()), string(b.Bytes())}, "the inputs stay")
	require.Empty(t, parse(t, string(merged.Bytes())).Validate())
	return merged, conflicts
}

func TestMerge(t *testing.T) {
	t.Parallel()
	base := ran(t, "one\ntwo\nthree", "second", "third")
	must := func(_ any, err error) { require.NoError(t, err) }
	source := func(id, text string) func(*notebook.Document) {
		return func(d *notebook.Document) { must(d.SetSource(notebook.ByID(id), text)) }
	}
	insert := func(at int, text string) func(*notebook.Document) {
		return func(d *notebook.Document) { must(d.Insert(at, code(text))) }
	}
	remove := func(id string) func(*notebook.Document) {
		return func(d *notebook.Document) { require.NoError(t, d.Delete(notebook.ByID(id))) }
	}
	move := func(id string, to int) func(*notebook.Document) {
		return func(d *notebook.Document) { require.NoError(t, d.Move(notebook.ByID(id), to)) }
	}
	nothing := func(*notebook.Document) {}
	for name, tt := range map[string]struct {
		ours, theirs func(*notebook.Document)
		want         []string
		conflicts    []notebook.Conflict
	}{
		"nothing":         {nothing, nothing, []string{"one\ntwo\nthree", "second", "third"}, nil},
		"ours":            {source("b", "ours"), nothing, []string{"one\ntwo\nthree", "ours", "third"}, nil},
		"theirs":          {nothing, source("b", "theirs"), []string{"one\ntwo\nthree", "theirs", "third"}, nil},
		"different cells": {source("a", "A"), source("c", "C"), []string{"A", "second", "C"}, nil},
		"different lines": {source("a", "ONE\ntwo\nthree"), source("a", "one\ntwo\nTHREE"), []string{"ONE\ntwo\nTHREE", "second", "third"}, nil},
		"same line": {
			source("b", "ours"), source("b", "theirs"),
			[]string{"one\ntwo\nthree", "<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs", "third"},
			[]notebook.Conflict{{Cell: 1, What: "source", Kept: "both"}},
		},
		"both insert":          {insert(1, "ours"), insert(1, "theirs"), []string{"one\ntwo\nthree", "ours", "theirs", "second", "third"}, nil},
		"both insert the same": {insert(1, "new"), insert(1, "new"), []string{"one\ntwo\nthree", "new", "second", "third"}, nil},
		"insert at the ends":   {insert(0, "first"), insert(3, "last"), []string{"first", "one\ntwo\nthree", "second", "third", "last"}, nil},
		"both delete":          {remove("b"), remove("b"), []string{"one\ntwo\nthree", "third"}, nil},
		"delete and insert":    {remove("b"), insert(2, "new"), []string{"one\ntwo\nthree", "new", "third"}, nil},
		"we delete":            {remove("b"), nothing, []string{"one\ntwo\nthree", "third"}, nil},
		"they delete":          {nothing, remove("b"), []string{"one\ntwo\nthree", "third"}, nil},
		"we delete what they change": {
			remove("b"), source("b", "theirs"),
			[]string{"one\ntwo\nthree", "theirs", "third"},
			[]notebook.Conflict{{Cell: 1, What: "deleted", Kept: "theirs"}},
		},
		"they delete what we change": {
			source("b", "ours"), remove("b"),
			[]string{"one\ntwo\nthree", "ours", "third"},
			[]notebook.Conflict{{Cell: 1, What: "deleted", Kept: "ours"}},
		},
		"we move":           {move("c", 0), source("c", "C"), []string{"C", "one\ntwo\nthree", "second"}, nil},
		"they move":         {source("c", "C"), move("c", 0), []string{"C", "one\ntwo\nthree", "second"}, nil},
		"both move":         {move("c", 0), move("a", 2), []string{"third", "one\ntwo\nthree", "second"}, nil},
		"they move, we add": {insert(3, "new"), move("c", 0), []string{"third", "new", "one\ntwo\nthree", "second"}, nil},
		"they delete all":   {nothing, func(d *notebook.Document) { must(d.ApplyText("", nil)) }, []string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			merged, conflicts := merge(t, base, tt.ours, tt.theirs)
			require.Equal(t, tt.want, sources(merged))
			require.Empty(t, cmp.Diff(tt.conflicts, conflicts))
		})
	}
}

func TestMergeOfMetadata(t *testing.T) {
	t.Parallel()
	base := build(t, code("a"))
	set := func(value any, path ...string) func(*notebook.Document) {
		return func(d *notebook.Document) {
			require.NoError(t, d.SetMetadata(notebook.At(0), value, path...))
			require.NoError(t, d.SetNotebookMetadata(value, path...))
		}
	}
	set(map[string]any{"x": 1, "y": 1, "z": 1}, "shared")(base)
	merged, conflicts := merge(t, base, func(d *notebook.Document) {
		set(2, "shared", "x")(d)
		set("ours", "mine")(d)
		set("ours", "both")(d)
		_, err := d.RemoveMetadata(notebook.At(0), "shared", "z")
		require.NoError(t, err)
	}, func(d *notebook.Document) {
		set(3, "shared", "y")(d)
		set("theirs", "yours")(d)
		set("theirs", "both")(d)
		require.True(t, d.RemoveNotebookMetadata("shared", "z"))
	})
	cell, _ := merged.Cell(0).Metadata()
	require.JSONEq(t, `{"shared": {"x": 2, "y": 3}, "mine": "ours", "yours": "theirs", "both": "ours"}`, string(cell))
	whole, _ := merged.Metadata()
	require.JSONEq(t, string(cell), string(whole))
	require.Equal(t, []notebook.Conflict{{Cell: 0, What: "metadata.both", Kept: "ours"}, {Cell: -1, What: "metadata.both", Kept: "ours"}}, conflicts)
	require.Equal(t, "cell 0: metadata.both (kept ours)", conflicts[0].String())
	require.Equal(t, "notebook: metadata.both (kept ours)", conflicts[1].String())
}

func TestMergeOfOutputs(t *testing.T) {
	t.Parallel()
	base := ran(t, "one\ntwo\nthree\nfour")
	rerun := func(source, output string) func(*notebook.Document) {
		return func(d *notebook.Document) {
			_, err := d.SetSource(notebook.At(0), source)
			require.NoError(t, err)
			require.NoError(t, d.SetOutputs(notebook.At(0), 9, notebook.NewStream("stdout", output)))
		}
	}
	same := "one\ntwo\nthree\nfour"
	for name, tt := range map[string]struct {
		ours, theirs func(*notebook.Document)
		want         string
		stale        bool
	}{
		"we ran":          {rerun(same, "ours"), func(*notebook.Document) {}, "ours", false},
		"they ran":        {func(*notebook.Document) {}, rerun(same, "theirs"), "theirs", false},
		"both ran":        {rerun(same, "ours"), rerun(same, "theirs"), "ours", false},
		"they edited":     {rerun(same, "ours"), rerun("new", "theirs"), "theirs", false},
		"we edited":       {rerun("new", "ours"), rerun(same, "theirs"), "ours", false},
		"both, alike":     {rerun("new", "ours"), rerun("new", "theirs"), "ours", false},
		"a merged source": {rerun("ONE\ntwo\nthree\nfour", "ours"), rerun("one\ntwo\nthree\nFOUR", "theirs"), "ours", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			merged, conflicts := merge(t, base, tt.ours, tt.theirs)
			require.Empty(t, conflicts)
			require.Equal(t, tt.want, merged.Cell(0).Outputs()[0].Text)
			require.Equal(t, tt.stale, merged.Cell(0).Stale())
		})
	}
}

func TestMergeOfTypes(t *testing.T) {
	t.Parallel()
	base := build(t, code("a"), code("b"))
	retype := func(typ notebook.CellType) func(*notebook.Document) {
		return func(d *notebook.Document) {
			_, err := d.SetType(notebook.At(0), typ)
			require.NoError(t, err)
			_, err = d.SetSource(notebook.At(1), string(typ))
			require.NoError(t, err)
		}
	}
	merged, conflicts := merge(t, base, func(d *notebook.Document) { require.NoError(t, d.SetTags(notebook.At(0), "t")) }, retype(notebook.Markdown))
	require.Equal(t, []notebook.CellType{"markdown", "code"}, types(merged))
	require.Equal(t, []string{"t"}, merged.Cell(0).Tags())
	require.Empty(t, conflicts)
	merged, conflicts = merge(t, base, retype(notebook.Raw), retype(notebook.Markdown))
	require.Equal(t, []notebook.CellType{"raw", "code"}, types(merged))
	require.Equal(t, []notebook.Conflict{{Cell: 0, What: "cell_type", Kept: "ours"}, {Cell: 1, What: "source", Kept: "both"}}, conflicts)
	merged, conflicts = merge(t, base, retype(notebook.Raw), func(d *notebook.Document) { require.NoError(t, d.SetTags(notebook.At(0), "t")) })
	require.Equal(t, notebook.Raw, merged.Cell(0).Type())
	require.Empty(t, conflicts)
}

func TestMergeOfFormatsAndLayouts(t *testing.T) {
	t.Parallel()
	base := parse(t, string(corpus(t)["nbformat-4.4"]))
	ours, theirs := base.Clone(), parse(t, strings.ReplaceAll(string(base.Bytes()), "\n ", "\n     "))
	theirs.Upgrade()
	_, err := theirs.Append(code("theirs\nlines"))
	require.NoError(t, err)
	_, err = ours.Insert(0, code("ours"))
	require.NoError(t, err)
	merged, conflicts := notebook.Merge(base, ours, theirs, &notebook.MergeOptions{Ours: "HEAD", Theirs: "branch"})
	require.Empty(t, conflicts)
	_, minor := merged.Version()
	require.Equal(t, 5, minor)
	require.Empty(t, merged.Validate())
	require.Contains(t, string(merged.Bytes()), "\n    \"theirs\\n\",\n    \"lines\"\n   ]\n  }", "laid out like ours")

	// The other way around, ids are taken away, for 4.4 has none.
	merged, _ = notebook.Merge(base, ours, parse(t, threeCells), nil)
	_, minor = merged.Version()
	require.Equal(t, 5, minor)
	newer := parse(t, threeCells)
	merged, _ = notebook.Merge(newer, newer, ours, &notebook.MergeOptions{Ours: "HEAD"})
	require.Empty(t, merged.Validate())
	require.NotContains(t, ids(merged), "")
}

// The cells of both sides that have one id, but are not one cell, get
// different ids; ours keeps its own.
func TestMergeKeepsIDsUnique(t *testing.T) {
	t.Parallel()
	base := build(t, code("a"))
	add := func(id, source string) func(*notebook.Document) {
		return func(d *notebook.Document) {
			_, err := d.Insert(0, notebook.NewCell{ID: id, Source: source})
			require.NoError(t, err)
		}
	}
	merged, conflicts := merge(t, base, add("same", "ours"), add("same", "theirs"))
	require.Len(t, conflicts, 1, "one id, so one cell, changed by both")
	require.Equal(t, []string{"same", "a"}, ids(merged))
	merged, _ = merge(t, base, func(d *notebook.Document) {
		add("x", "one")(d)
		add("y", "two")(d)
	}, func(d *notebook.Document) {
		add("y", "one")(d)
		add("x", "two")(d)
	})
	require.Empty(t, merged.Validate())
}

// Merging with an unchanged side gives the other side, whatever it did.
func TestMergeWithAnUnchangedSide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := documentGen().Draw(t, "base")
		edited := base.Clone()
		edited.Stale = notebook.StalePolicy(rapid.IntRange(0, 2).Draw(t, "stale"))
		for range rapid.IntRange(0, 5).Draw(t, "edits") {
			n := edited.Len()
			switch choice := rapid.IntRange(0, 4).Draw(t, "edit"); {
			case choice == 0 || n == 0:
				_, err := edited.Insert(rapid.IntRange(0, n).Draw(t, "at"), cellGen().Draw(t, "cell"))
				require.NoError(t, err)
			case choice == 1:
				require.NoError(t, edited.Delete(notebook.At(rapid.IntRange(0, n-1).Draw(t, "at"))))
			case choice == 2:
				require.NoError(t, edited.Move(notebook.At(rapid.IntRange(0, n-1).Draw(t, "at")), rapid.IntRange(0, n-1).Draw(t, "to")))
			case choice == 3:
				_, err := edited.SetType(notebook.At(rapid.IntRange(0, n-1).Draw(t, "at")), cellGen().Draw(t, "cell").Type)
				require.NoError(t, err)
			default:
				_, err := edited.SetSource(notebook.At(rapid.IntRange(0, n-1).Draw(t, "at")), sourceGen().Draw(t, "source"))
				require.NoError(t, err)
			}
		}
		merged, conflicts := notebook.Merge(base, edited, base, nil)
		require.Empty(t, conflicts)
		require.Equal(t, string(edited.Bytes()), string(merged.Bytes()))
		merged, conflicts = notebook.Merge(base, base, edited, nil)
		require.Empty(t, conflicts)
		require.True(t, notebook.Diff(edited, merged).Empty(), notebook.Diff(edited, merged).String())
		merged, conflicts = notebook.Merge(base, edited, edited, nil)
		require.Empty(t, conflicts)
		require.Equal(t, string(edited.Bytes()), string(merged.Bytes()))
	})
}
