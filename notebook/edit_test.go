package notebook_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
