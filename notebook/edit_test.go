package notebook_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

func TestRefs(t *testing.T) {
	t.Parallel()
	d := build(t, code("0"), code("1"), notebook.NewCell{Source: "2", ID: "7"})
	for text, want := range map[string]string{"0": "0", "2": "2", "-1": "2", "-3": "0", "b": "1", "id:7": "2", "id:b": "1"} {
		ref, err := notebook.ParseRef(text)
		require.NoError(t, err)
		c, err := d.Find(ref)
		require.NoError(t, err)
		require.Equal(t, want, c.Source(), text)
		again, err := notebook.ParseRef(ref.String())
		require.NoError(t, err)
		require.Equal(t, ref, again)
		require.Equal(t, c, d.Cell(d.Index(c)))
	}
	for text, message := range map[string]string{
		"3": "no such cell: cell index 3 out of range (0-2)", "-4": "no such cell: cell index -4 out of range (0-2)",
		"7": "no such cell: cell index 7 out of range (0-2)", "z": `no such cell: no cell has the id "z"`,
	} {
		ref, err := notebook.ParseRef(text)
		require.NoError(t, err)
		_, err = d.Find(ref)
		require.ErrorIs(t, err, notebook.ErrNoCell)
		require.EqualError(t, err, message)
	}
	for _, text := range []string{"", "id:"} {
		_, err := notebook.ParseRef(text)
		require.ErrorIs(t, err, notebook.ErrArgument)
	}
	_, err := notebook.New().Find(notebook.At(0))
	require.EqualError(t, err, "no such cell: cell index 0 out of range, the notebook has no cells")
	twins := parse(t, string(corpus(t)["duplicate-ids-4.5"]))
	_, err = twins.Find(notebook.ByID("x"))
	require.EqualError(t, err, `no such cell: id "x" names cells 0 and 1`)
}

func TestInsert(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"), code("b"))
	added, err := d.Insert(1, markdown("x"), notebook.NewCell{Source: "y", ID: "mine", Tags: []string{"t"}, Metadata: json.RawMessage(`{"n": 1.0}`)})
	require.NoError(t, err)
	require.Len(t, added, 2)
	require.Equal(t, []string{"a", "x", "y", "b"}, sources(d))
	require.Equal(t, "mine", added[1].ID())
	metadata, _ := added[1].Metadata()
	require.JSONEq(t, `{"n": 1.0, "tags": ["t"]}`, string(metadata))
	require.Contains(t, string(metadata), "1.0")
	_, err = d.Insert(0, code("first"))
	require.NoError(t, err)
	_, err = d.Insert(d.Len(), code("last"))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "a", "x", "y", "b", "last"}, sources(d))
	require.Empty(t, parse(t, string(d.Bytes())).Validate())
}

func TestInsertThatIsRefused(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"))
	before := string(d.Bytes())
	for _, tt := range []struct {
		index   int
		spec    notebook.NewCell
		kind    error
		message string
	}{
		{-1, code(""), notebook.ErrNoCell, "insert index -1 out of range (0-1)"},
		{2, code(""), notebook.ErrNoCell, "insert index 2 out of range (0-1)"},
		{0, notebook.NewCell{Type: "heading"}, notebook.ErrArgument, `cell type "heading"`},
		{0, notebook.NewCell{Source: "\xff"}, notebook.ErrArgument, "the text is not UTF-8"},
		{0, notebook.NewCell{ID: "a"}, notebook.ErrArgument, `cell id "a" is in use`},
		{0, notebook.NewCell{ID: "a b"}, notebook.ErrArgument, `cell id "a b" is not`},
		{0, notebook.NewCell{ID: strings.Repeat("x", 65)}, notebook.ErrArgument, "is not 1 to 64 characters"},
		{0, notebook.NewCell{Metadata: json.RawMessage(`[]`)}, notebook.ErrArgument, "metadata is an object, not an array"},
		{0, notebook.NewCell{Metadata: json.RawMessage(`{`)}, notebook.ErrArgument, "metadata value"},
		{0, notebook.NewCell{Metadata: json.RawMessage("{\"a\": \"\xff\"}")}, notebook.ErrArgument, "not UTF-8"},
		{0, notebook.NewCell{Tags: []string{"a,b"}}, notebook.ErrArgument, "holds a comma"},
		{0, notebook.NewCell{Tags: []string{""}}, notebook.ErrArgument, "a tag is empty"},
		{0, notebook.NewCell{Tags: []string{"a", "a"}}, notebook.ErrArgument, "is repeated"},
	} {
		_, err := d.Insert(tt.index, code("ok"), tt.spec)
		require.ErrorIs(t, err, tt.kind)
		require.ErrorContains(t, err, tt.message)
		require.Equal(t, before, string(d.Bytes()))
	}
	old := parse(t, string(corpus(t)["nbformat-4.4"]))
	_, err := old.Append(notebook.NewCell{ID: "x"})
	require.ErrorContains(t, err, "cells of nbformat 4.4 have no id")
}

func TestDeleteAndMove(t *testing.T) {
	t.Parallel()
	abcd := func() *notebook.Document { return build(t, code("0"), code("1"), code("2"), code("3")) }
	d := abcd()
	require.NoError(t, d.Delete(notebook.At(0), notebook.ByID("c"), notebook.At(0)))
	require.Equal(t, []string{"1", "3"}, sources(d))
	require.ErrorIs(t, d.Delete(notebook.At(0), notebook.At(5)), notebook.ErrNoCell)
	require.Equal(t, 2, d.Len())
	require.NoError(t, d.Delete(notebook.At(0), notebook.At(1)))
	require.Equal(t, string(notebook.New().Bytes()), string(d.Bytes()))
	for _, tt := range []struct {
		from, to int
		want     string
	}{{0, 3, "1230"}, {3, 0, "3012"}, {1, 2, "0213"}, {2, 2, "0123"}, {-1, 0, "3012"}} {
		d := abcd()
		require.NoError(t, d.Move(notebook.At(tt.from), tt.to))
		require.Equal(t, tt.want, strings.Join(sources(d), ""))
		require.Equal(t, tt.want != "0123", d.Edited() && string(d.Bytes()) != string(abcd().Bytes()))
	}
	for _, to := range []int{-1, 4} {
		require.ErrorIs(t, abcd().Move(notebook.At(0), to), notebook.ErrNoCell)
	}
	require.ErrorIs(t, abcd().Move(notebook.At(9), 0), notebook.ErrNoCell)
}

// A move and its opposite keep the bytes, in every layout.
func TestMoveAndBack(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		if d.Len() < 2 || d.UpgradedFrom() != 0 || name == "odd-white-space" {
			continue
		}
		require.NoError(t, d.Move(notebook.At(0), d.Len()-1))
		require.NotEqual(t, string(data), string(d.Bytes()), name)
		parse(t, string(d.Bytes()))
		require.NoError(t, d.Move(notebook.At(-1), 0))
		require.Equal(t, string(data), string(d.Bytes()), name)
	}
}

// A cell that is inserted and deleted again leaves no trace.
func TestInsertAndDelete(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		if d.UpgradedFrom() != 0 || name == "odd-white-space" {
			continue
		}
		for at := range d.Len() + 1 {
			_, err := d.Insert(at, code("new"))
			require.NoError(t, err)
			again := parse(t, string(d.Bytes()))
			require.Equal(t, "new", again.Cell(at).Source())
			require.NoError(t, d.Delete(notebook.At(at)))
			require.Equal(t, string(data), string(d.Bytes()), "%s at %d", name, at)
		}
	}
}

// New cells look like the others: their members are in the order, and in the
// layout, of the document.
func TestNewCellsLookLikeTheOthers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"colab-source-first":      "{\n      \"cell_type\": \"code\",\n      \"source\": [\n        \"x\"\n      ],\n      \"metadata\": {},\n      \"execution_count\": null,\n      \"outputs\": []\n    }",
		"kaggle-one-line":         `{"cell_type":"code","source":["x"],"metadata":{},"execution_count":null,"outputs":[]}`,
		"python-json-dumps":       `{"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": ["x"]}`,
		"vscode-tabs-4.5":         "{\n\t\t\t\"cell_type\": \"code\",\n\t\t\t\"execution_count\": null,\n\t\t\t\"id\": \"new\",\n\t\t\t\"metadata\": {},\n\t\t\t\"outputs\": [],\n\t\t\t\"source\": [\n\t\t\t\t\"x\"\n\t\t\t]\n\t\t}",
		"spaces-3-no-space-colon": "{\n         \"cell_type\" : \"code\",\n         \"execution_count\" : null,\n         \"metadata\" : {},\n         \"outputs\" : [],\n         \"source\" : [\n            \"x\"\n         ]\n      }",
		"indent-0":                "{\n\"cell_type\": \"code\",\n\"execution_count\": null,\n\"metadata\": {},\n\"outputs\": [],\n\"source\": [\n\"x\"\n]\n}",
		"crlf":                    "{\r\n   \"cell_type\": \"code\",\r\n   \"execution_count\": null,\r\n   \"metadata\": {},\r\n   \"outputs\": [],\r\n   \"source\": [\r\n    \"x\"\r\n   ]\r\n  }",
		"empty-one-line":          `{"cell_type":"code","execution_count":null,"id":"new","metadata":{},"outputs":[],"source":["x"]}`,
		"empty-notebook":          "{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"new\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }",
		"databricks":              `{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":["x"]}`,
		"no-nbformat":             "{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }",
		"nbclient-executed-4.5":   "{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"new\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }",
	} {
		d := parse(t, string(corpus(t)[name]))
		d.NewID = func() string { return "new" }
		added, err := d.Append(code("x"))
		require.NoError(t, err)
		require.Equal(t, want, string(added[0].JSON()), name)
		require.Contains(t, string(d.Bytes()), want, name)
	}
}

func TestSplitAndJoin(t *testing.T) {
	t.Parallel()
	d := ran(t, "a\nb\nc")
	require.NoError(t, d.AddTags(notebook.At(0), "t"))
	require.NoError(t, d.SetMetadata(notebook.At(0), map[string]string{"x": "y"}, "execution"))
	second, err := d.Split(notebook.At(0), 2)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b\nc"}, sources(d))
	require.Equal(t, "a", d.Cell(0).ID())
	require.NotEqual(t, "a", second.ID())
	require.Equal(t, []string{"t"}, second.Tags())
	require.False(t, has(second, "execution\""))
	require.True(t, d.Cell(0).Stale())
	require.Equal(t, 1, d.Cell(0).OutputCount())
	require.Zero(t, second.OutputCount())
	require.Empty(t, d.Validate())
	joined, err := d.Join(notebook.At(0), 2)
	require.NoError(t, err)
	require.Equal(t, "a\nb\nc", joined.Source())
	require.False(t, joined.Stale(), "the source is what it was")
	require.Equal(t, 1, d.Len())
	for _, line := range []int{-1, 0, 1, 4} {
		_, err := d.Split(notebook.At(0), line)
		require.ErrorIs(t, err, notebook.ErrArgument)
	}
	for _, count := range []int{0, 1, 2} {
		_, err := d.Join(notebook.At(0), count)
		require.ErrorIs(t, err, notebook.ErrArgument)
	}
}

func TestJoinPutsPartsTogether(t *testing.T) {
	t.Parallel()
	d := ran(t, "a", "b")
	_, err := d.Append(markdown("m"))
	require.NoError(t, err)
	joined, err := d.Join(notebook.At(0), 3)
	require.NoError(t, err)
	require.Equal(t, "a\nb\nm", joined.Source())
	require.Equal(t, 2, joined.OutputCount())
	require.Equal(t, "b", joined.Outputs()[1].Text)
	require.True(t, joined.Stale())
	require.Empty(t, parse(t, string(d.Bytes())).Validate())

	d = parse(t, threeCells)
	_, err = d.Insert(2, markdown("more"))
	require.NoError(t, err)
	e := parse(t, strings.Replace(string(d.Bytes()), `"source": "raw"`, `"attachments": {"p.png": {"text/plain": "other"}, "q.png": {"image/png": "BB=="}}, "source": "raw"`, 1))
	joined, err = e.Join(notebook.At(1), 3)
	require.NoError(t, err)
	require.Equal(t, "# Title\ntext\nmore\nraw", joined.Source())
	require.Contains(t, string(joined.JSON()), "\"p.png\": {\n     \"image/png\": \"AA==\"\n    }")
	require.NotContains(t, string(joined.JSON()), "other")
	require.Contains(t, string(joined.JSON()), "BB==")
	require.Empty(t, e.Validate())
	first, err := e.Split(notebook.At(1), 2)
	require.NoError(t, err)
	require.True(t, has(first, "attachments"))
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	require.NoError(t, d.SetMetadata(notebook.At(0), json.RawMessage(`{"b": 1.50}`), "a", "deep"))
	value, ok := d.Cell(0).Metadata("a")
	require.True(t, ok)
	require.JSONEq(t, `{"deep": {"b": 1.50}}`, string(value))
	require.Contains(t, string(value), "1.50")
	require.NoError(t, d.SetMetadata(notebook.ByID("bbb"), "<&>é", "text"))
	require.Contains(t, string(d.Bytes()), `"<&>é"`)
	require.NoError(t, d.SetMetadata(notebook.At(0), 1, "custom", "now", "an object"))
	removed, err := d.RemoveMetadata(notebook.At(0), "a", "deep")
	require.NoError(t, err)
	require.True(t, removed)
	removed, err = d.RemoveMetadata(notebook.At(0), "a", "deep")
	require.NoError(t, err)
	require.False(t, removed)
	require.NoError(t, d.SetMetadata(notebook.At(2), map[string]any{}))
	whole, _ := d.Cell(2).Metadata()
	require.Equal(t, "{}", string(whole))
	require.Empty(t, parse(t, string(d.Bytes())).Validate())

	require.NoError(t, d.SetNotebookMetadata([]int{1, 2}, "new", "list"))
	value, _ = d.Metadata("new")
	require.JSONEq(t, `{"list": [1, 2]}`, string(value))
	require.True(t, d.RemoveNotebookMetadata("new"))
	require.False(t, d.RemoveNotebookMetadata("new"))
	require.False(t, d.RemoveNotebookMetadata())

	require.ErrorIs(t, d.SetMetadata(notebook.At(0), func() {}, "x"), notebook.ErrArgument)
	require.ErrorIs(t, d.SetMetadata(notebook.At(0), 1), notebook.ErrArgument)
	require.ErrorIs(t, d.SetMetadata(notebook.At(9), 1, "x"), notebook.ErrNoCell)
	require.ErrorIs(t, d.SetNotebookMetadata("x"), notebook.ErrArgument)
	_, err = d.RemoveMetadata(notebook.At(9), "x")
	require.ErrorIs(t, err, notebook.ErrNoCell)
}

// Metadata that is set to what it is, or removed where it is not, is no edit.
func TestSettingTheSameIsNoEdit(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	require.NoError(t, d.SetMetadata(notebook.At(0), json.RawMessage(`[ "t" ]`), "tags"))
	require.NoError(t, d.SetNotebookMetadata(json.RawMessage(`[1.50]`), "k"))
	require.NoError(t, d.SetTags(notebook.At(0), "t"))
	require.NoError(t, d.AddTags(notebook.At(0), "t"))
	require.NoError(t, d.RemoveTags(notebook.At(0), "u"))
	require.NoError(t, d.Move(notebook.At(1), 1))
	require.NoError(t, d.Delete())
	_, err := d.Insert(0)
	require.NoError(t, err)
	changed, err := d.SetSource(notebook.At(1), "# Title\ntext")
	require.NoError(t, err)
	require.False(t, changed)
	changed, err = d.SetType(notebook.At(1), notebook.Markdown)
	require.NoError(t, err)
	require.False(t, changed)
	require.Zero(t, d.AddMissingIDs())
	require.False(t, d.Upgrade())
	require.False(t, d.Edited())
	require.Equal(t, threeCells, string(d.Bytes()))
}

func TestTags(t *testing.T) {
	t.Parallel()
	d := build(t, code("a"))
	require.NoError(t, d.AddTags(notebook.At(0), "x", "y"))
	require.NoError(t, d.AddTags(notebook.At(0), "y", "z"))
	require.Equal(t, []string{"x", "y", "z"}, d.Cell(0).Tags())
	require.NoError(t, d.RemoveTags(notebook.At(0), "y"))
	require.Equal(t, []string{"x", "z"}, d.Cell(0).Tags())
	require.ErrorIs(t, d.AddTags(notebook.At(0), "a,b"), notebook.ErrArgument)
	require.NoError(t, d.SetTags(notebook.At(0)))
	require.Empty(t, d.Cell(0).Tags())
	require.False(t, has(d.Cell(0), "tags"))
	for _, f := range []func() error{
		func() error { return d.SetTags(notebook.At(9)) },
		func() error { return d.AddTags(notebook.At(9)) },
		func() error { return d.RemoveTags(notebook.At(9)) },
	} {
		require.ErrorIs(t, f(), notebook.ErrNoCell)
	}
}

func TestSetSourceAndType(t *testing.T) {
	t.Parallel()
	d := parse(t, threeCells)
	changed, err := d.SetSource(notebook.ByID("ccc"), "é\nx")
	require.NoError(t, err)
	require.True(t, changed)
	require.Contains(t, string(d.Bytes()), `"source": "é\nx"`, "a string stays a string")
	changed, err = d.SetType(notebook.At(0), notebook.Raw)
	require.NoError(t, err)
	require.True(t, changed)
	_, err = d.SetSource(notebook.At(0), "\xff")
	require.ErrorIs(t, err, notebook.ErrArgument)
	_, err = d.SetSource(notebook.At(9), "")
	require.ErrorIs(t, err, notebook.ErrNoCell)
	_, err = d.SetType(notebook.At(0), "x")
	require.ErrorIs(t, err, notebook.ErrArgument)
	_, err = d.SetType(notebook.At(9), notebook.Code)
	require.ErrorIs(t, err, notebook.ErrNoCell)
	odd := parse(t, `{"cells": [{"cell_type": "raw", "source": {"not": "text"}, "metadata": {}}, {"cell_type": "raw", "metadata": {}}]}`)
	for i := range 2 {
		_, err = odd.SetSource(notebook.At(i), "now")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"now", "now"}, sources(parse(t, string(odd.Bytes()))))
}

func TestLoneSurrogatesSurviveAnEditOfTheirCell(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["lone-surrogate"]))
	apply(t, d, strings.Replace(d.Text(), "ok", "changed", 1))
	require.Contains(t, string(d.Bytes()), `\ud83d é\n`)
	_, err := d.SetSource(notebook.At(1), d.Cell(1).Source()+"\nmore")
	require.NoError(t, err)
	require.Contains(t, string(d.Bytes()), `'\udc00\ud83d'\n`)
}

func TestSearchAndReplace(t *testing.T) {
	t.Parallel()
	d := build(t, code("alpha\nbeta alpha"), markdown("alpha"), code("gamma"))
	pattern := regexp.MustCompile("alpha")
	found, err := d.Search(pattern, nil)
	require.NoError(t, err)
	require.Equal(t, []notebook.Match{
		{Cell: 0, Start: 0, End: 5, Line: 1, Column: 1, Text: "alpha"},
		{Cell: 0, Start: 11, End: 16, Line: 2, Column: 6, Text: "beta alpha"},
		{Cell: 1, Start: 0, End: 5, Line: 1, Column: 1, Text: "alpha"},
	}, found)
	n, err := d.ReplaceAll(regexp.MustCompile("(al)pha"), "${1}PHA", &notebook.SearchOptions{Types: []notebook.CellType{notebook.Code}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"alPHA\nbeta alPHA", "alpha", "gamma"}, sources(d))
	n, err = d.ReplaceAll(pattern, "x", &notebook.SearchOptions{Cells: []notebook.Ref{notebook.At(0), notebook.ByID("c")}})
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = d.Search(pattern, &notebook.SearchOptions{Cells: []notebook.Ref{notebook.At(7)}})
	require.ErrorIs(t, err, notebook.ErrNoCell)
	_, err = d.Search(pattern, &notebook.SearchOptions{Types: []notebook.CellType{"x"}})
	require.ErrorIs(t, err, notebook.ErrArgument)
	_, err = d.ReplaceAll(pattern, "\xff", nil)
	require.ErrorIs(t, err, notebook.ErrArgument)
	_, err = d.ReplaceAll(pattern, "", &notebook.SearchOptions{Types: []notebook.CellType{"x"}})
	require.ErrorIs(t, err, notebook.ErrArgument)
}

func TestClonesAreIndependent(t *testing.T) {
	t.Parallel()
	d := ran(t, "a", "b")
	before := string(d.Bytes())
	c := d.Clone()
	_, err := c.SetSource(notebook.At(0), "changed")
	require.NoError(t, err)
	require.NoError(t, c.Move(notebook.At(0), 1))
	require.NoError(t, c.SetNotebookMetadata(1, "x"))
	require.Equal(t, before, string(d.Bytes()))
	require.Equal(t, []string{"b", "changed"}, sources(c))
}

// A sequence of edits, with a plain list as the model. After each step the
// bytes read back as the same notebook, which is valid.
func TestEditsFollowAModel(t *testing.T) {
	t.Parallel()
	type cell struct {
		id, source string
		typ        notebook.CellType
	}
	rapid.Check(t, func(t *rapid.T) {
		next := 0
		d := notebook.New()
		d.NewID = func() string { next++; return fmt.Sprintf("n%d", next) }
		model := []cell{}
		pick := func(t *rapid.T) int {
			if len(model) == 0 {
				t.Skip("no cells")
			}
			return rapid.IntRange(0, len(model)-1).Draw(t, "at")
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				at := rapid.IntRange(0, len(model)).Draw(t, "at")
				spec := cellGen().Draw(t, "cell")
				added, err := d.Insert(at, spec)
				require.NoError(t, err)
				model = slices.Insert(model, at, cell{added[0].ID(), spec.Source, spec.Type})
			},
			"source": func(t *rapid.T) {
				at, source := pick(t), sourceGen().Draw(t, "source")
				_, err := d.SetSource(notebook.At(at), source)
				require.NoError(t, err)
				model[at].source = source
			},
			"type": func(t *rapid.T) {
				at, typ := pick(t), cellGen().Draw(t, "cell").Type
				_, err := d.SetType(notebook.ByID(model[at].id), typ)
				require.NoError(t, err)
				model[at].typ = typ
			},
			"delete": func(t *rapid.T) {
				at := pick(t)
				require.NoError(t, d.Delete(notebook.ByID(model[at].id)))
				model = slices.Delete(model, at, at+1)
			},
			"move": func(t *rapid.T) {
				at, to := pick(t), pick(t)
				require.NoError(t, d.Move(notebook.At(at), to))
				c := model[at]
				model = slices.Insert(slices.Delete(model, at, at+1), to, c)
			},
			"split": func(t *rapid.T) {
				at := pick(t)
				lines := notebook.SplitLines(model[at].source)
				if len(lines) < 2 {
					t.Skip("one line")
				}
				line := rapid.IntRange(2, len(lines)).Draw(t, "line")
				added, err := d.Split(notebook.At(at), line)
				require.NoError(t, err)
				model[at].source = strings.TrimSuffix(strings.Join(lines[:line-1], ""), "\n")
				model = slices.Insert(model, at+1, cell{added.ID(), strings.Join(lines[line-1:], ""), model[at].typ})
			},
			"join": func(t *rapid.T) {
				at := pick(t)
				if at+2 > len(model) {
					t.Skip("the last cell")
				}
				_, err := d.Join(notebook.At(at), 2)
				require.NoError(t, err)
				model[at].source += "\n" + model[at+1].source
				model = slices.Delete(model, at+1, at+2)
			},
			"outputs": func(t *rapid.T) {
				at := pick(t)
				if model[at].typ == notebook.Code {
					require.NoError(t, d.SetOutputs(notebook.At(at), 1, notebook.NewStream("stdout", "x\ny")))
				}
			},
			"tags": func(t *rapid.T) { require.NoError(t, d.AddTags(notebook.At(pick(t)), "t")) },
			"reopen": func(t *rapid.T) {
				newID := d.NewID
				d = parse(t, string(d.Bytes()))
				d.NewID = newID
			},
			"": func(t *rapid.T) {
				for _, doc := range []*notebook.Document{d, parse(t, string(d.Bytes()))} {
					got := []cell{}
					for _, c := range doc.Cells() {
						got = append(got, cell{c.ID(), c.Source(), c.Type()})
					}
					require.Equal(t, model, got)
					require.Empty(t, doc.Validate())
				}
			},
		})
	})
}
