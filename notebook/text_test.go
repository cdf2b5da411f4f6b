package notebook_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

func TestIsPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"a.ipynb": true, "a.IPYNB": true, "/x/a.b.IpYnB": true, ".ipynb": true,
		"a.ipynb.txt": false, "ipynb": false, "a.json": false, "": false, "a.ipynb/": false,
	} {
		require.Equal(t, want, notebook.IsPath(path), path)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cells []notebook.NewCell
		want  string
	}{
		"no cells":         {nil, ""},
		"empty cell":       {[]notebook.NewCell{code("")}, "# %% [code] cell:0"},
		"three types":      {[]notebook.NewCell{code("a\nb"), markdown("# t"), {Type: notebook.Raw, Source: "r"}}, "# %% [code] cell:0\na\nb\n# %% [markdown] cell:1\n# t\n# %% [raw] cell:2\nr"},
		"newline at end":   {[]notebook.NewCell{code("a\n"), code("b\n")}, "# %% [code] cell:0\na\n\n# %% [code] cell:1\nb\n"},
		"only newlines":    {[]notebook.NewCell{code("\n"), code("\n\n")}, "# %% [code] cell:0\n\n\n# %% [code] cell:1\n\n\n"},
		"empty in between": {[]notebook.NewCell{code(""), code(""), code("x")}, "# %% [code] cell:0\n# %% [code] cell:1\n# %% [code] cell:2\nx"},
		"marker-like": {
			[]notebook.NewCell{code("# %% [code]\n# %% [raw] cell:07\n# %%% [markdown]\n# %%%%% [code] cell:1\r\n# %% [code] \n# %%[code]\n# %% x")},
			"# %% [code] cell:0\n# %%% [code]\n# %%% [raw] cell:07\n# %%%% [markdown]\n# %%%%%% [code] cell:1\r\n# %% [code] \n# %%[code]\n# %% x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t, tt.cells...)
			require.Equal(t, tt.want, d.Text())
			before := string(d.Bytes())
			report, err := d.ApplyText(tt.want, nil)
			require.NoError(t, err)
			require.False(t, report.Changed())
			require.Equal(t, before, string(d.Bytes()))
		})
	}
}

func TestParseText(t *testing.T) {
	t.Parallel()
	c := func(line, index int, typ notebook.CellType, source string) notebook.TextCell {
		return notebook.TextCell{Type: typ, Source: source, Index: index, Line: line}
	}
	for name, tt := range map[string]struct {
		text string
		want []notebook.TextCell
	}{
		"empty":                 {"", nil},
		"marker alone":          {"# %% [code]", []notebook.TextCell{c(1, -1, notebook.Code, "")}},
		"marker and newline":    {"# %% [code]\n", []notebook.TextCell{c(1, -1, notebook.Code, "")}},
		"one blank line":        {"# %% [code]\n\n# %% [raw] cell:3\nx", []notebook.TextCell{c(1, -1, notebook.Code, ""), c(3, 3, notebook.Raw, "x")}},
		"two blank lines":       {"# %% [code]\n\n\n# %% [raw]", []notebook.TextCell{c(1, -1, notebook.Code, "\n"), c(4, -1, notebook.Raw, "")}},
		"index with zeros":      {"# %% [code] cell:007", []notebook.TextCell{c(1, 7, notebook.Code, "")}},
		"index beyond int":      {"# %% [code] cell:99999999999999999999", []notebook.TextCell{c(1, -1, notebook.Code, "")}},
		"escaped lines":         {"# %% [code]\n# %%% [code]\n# %%%% [raw] cell:1\n# %%% x", []notebook.TextCell{c(1, -1, notebook.Code, "# %% [code]\n# %%% [raw] cell:1\n# %%% x")}},
		"byte order mark":       {"\ufeff# %% [code]\nx", []notebook.TextCell{c(1, -1, notebook.Code, "x")}},
		"CRLF":                  {"# %% [code] cell:0\r\na\r\nb\r\n# %% [raw] cell:1\r\n\r\n\r\n", []notebook.TextCell{c(1, 0, notebook.Code, "a\nb"), c(4, 1, notebook.Raw, "\n\n")}},
		"CRLF, one line":        {"# %% [code] cell:0\r", []notebook.TextCell{c(1, 0, notebook.Code, "")}},
		"carriage return later": {"# %% [code] cell:0\na\r\n# %% [raw] cell:1\r\nb", []notebook.TextCell{c(1, 0, notebook.Code, "a\r"), c(3, 1, notebook.Raw, "b")}},
		"percent inside cells":  {"# %% [code]\nx\n# %%\ny\n# %% title\nz", []notebook.TextCell{c(1, -1, notebook.Code, "x\n# %%\ny\n# %% title\nz")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := notebook.ParseText(tt.text, notebook.FormatAuto)
			require.NoError(t, err)
			require.Equal(t, notebook.FormatCells, got.Format)
			require.Empty(t, cmp.Diff(tt.want, got.Cells))
		})
	}
}

func TestTextThatIsRefused(t *testing.T) {
	t.Parallel()
	const sentence = `expected first line to be "# %% [code] cell:0", "# %% [markdown] cell:0", or "# %% [raw] cell:0".`
	for name, text := range map[string]string{
		"code first":            "x = 1\n# %% [code] cell:0\n",
		"blank line first":      "\n# %% [code] cell:0\n",
		"blank CRLF line first": "\r\n# %% [code] cell:0\r\n",
		"no marker":             "hello",
		"newline alone":         "\n",
		"space before":          " # %% [code] cell:0",
		"space after":           "# %% [code] cell:0 ",
		"escaped marker":        "# %%% [code] cell:0",
		"unknown type":          "# %% [heading] cell:0",
		"unknown type alone":    "# %% [heading]",
		"upper case":            "# %% [Code] cell:0",
		"no number":             "# %% [code] cell:",
		"negative":              "# %% [code] cell:-1",
		"title before":          "# %% x [code] cell:0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := build(t, code("keep"))
			before := string(d.Bytes())
			for _, format := range []notebook.TextFormat{notebook.FormatAuto, notebook.FormatCells} {
				_, err := d.ApplyText(text, &notebook.ApplyOptions{Format: format})
				require.ErrorIs(t, err, notebook.ErrText)
				require.EqualError(t, err, "Invalid notebook editable representation: "+sentence)
				require.Equal(t, before, string(d.Bytes()))
			}
		})
	}
	_, err := notebook.ParseText("# %% [code]\n\xff", notebook.FormatAuto)
	require.ErrorIs(t, err, notebook.ErrText)
}

func TestDoubtfulMarkersAreReported(t *testing.T) {
	t.Parallel()
	text := strings.Join([]string{
		"# %% [code] cell:0", "#%% [code]", "# %% [Markdown] cell:1", "# %% [code] cell:1 ", "# %%  [raw]", "# %% code]",
		"# %% title", "# %%% [code]", "x", "# %% [other]", "  # %% [raw] cell:2",
	}, "\n")
	got, err := notebook.ParseText(text, notebook.FormatAuto)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3, 4, 5, 6, 11}, got.Doubtful)
}

// Text, read back, is the same text; and a notebook that is applied its own
// text keeps every byte.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := documentGen().Draw(t, "document")
		before, text := string(d.Bytes()), d.Text()
		report, err := d.ApplyText(text, nil)
		require.NoError(t, err)
		require.False(t, report.Changed())
		require.Empty(t, report.Deleted)
		require.Equal(t, before, string(d.Bytes()))

		// With the line ends and the byte order mark of another editor.
		report, err = d.ApplyText("\ufeff"+strings.ReplaceAll(text, "\n", "\r\n"), nil)
		require.NoError(t, err)
		if !strings.Contains(text, "\r") {
			require.False(t, report.Changed())
			require.Equal(t, before, string(d.Bytes()))
		}

		// With the newline that an editor adds.
		d = parse(t, before)
		if !strings.HasSuffix(text, "\n") && text != "" {
			text += "\n"
		}
		report, err = d.ApplyText(text, &notebook.ApplyOptions{EditorNewline: true})
		require.NoError(t, err)
		require.False(t, report.Changed())
		require.Equal(t, before, string(d.Bytes()))
	})
}

func TestCorpusTextRoundTrip(t *testing.T) {
	t.Parallel()
	for name, data := range corpus(t) {
		if name == "no-metadata-cell" {
			continue // lacks members that a code cell gets by the rules
		}
		d := parse(t, string(data))
		report, err := d.ApplyText(d.Text(), nil)
		require.NoError(t, err, name)
		require.False(t, report.Changed(), name)
		require.Equal(t, string(data), string(d.Bytes()), name)
	}
}

// Any text of markers and sources gives a notebook whose view is that text,
// with the markers numbered.
func TestTextOfNewCells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(cellGen(), 0, 6).Draw(t, "cells")
		want := build(t, cells...).Text()
		d := build(t, code("something else"))
		_, err := d.ApplyText(want, nil)
		require.NoError(t, err)
		require.Equal(t, want, d.Text())
		require.Empty(t, d.Validate())
	})
}

func TestSelect(t *testing.T) {
	t.Parallel()
	d := build(t, code("a\nb"), markdown("c"), code(""))
	all := strings.Split(d.Text(), "\n")
	require.Len(t, all, 6)
	for selector, want := range map[string][]int{
		"":          {1, 2, 3, 4, 5, 6},
		"2":         {2},
		"2-3":       {2, 3},
		"5-":        {5, 6},
		"-2":        {1, 2},
		"4+2":       {4, 5},
		"1,3-4,6-9": {1, 3, 4, 6},
		"6,1":       {1, 6},
		"3-5,1-4":   {1, 2, 3, 4, 5},
		"7-":        nil,
		"100":       nil,
	} {
		sel, err := notebook.ParseSelector(selector)
		require.NoError(t, err)
		var got []int
		for line := range d.Select(sel) {
			got = append(got, line.Number)
			require.Equal(t, all[line.Number-1], line.Text)
			require.Equal(t, strings.HasPrefix(line.Text, "# %%"), line.Marker)
			require.True(t, sel.Contains(line.Number))
		}
		require.Equal(t, want, got, selector)
	}
	cells := []int{}
	for line := range d.Lines() {
		cells = append(cells, line.Cell)
	}
	require.Equal(t, []int{0, 0, 0, 1, 1, 2}, cells)
}

func TestSelectStopsWhenAsked(t *testing.T) {
	t.Parallel()
	d := build(t, code("a\nb"), code("c"))
	for _, selector := range []string{"", "raw", "2-"} {
		sel, err := notebook.ParseSelector(selector)
		require.NoError(t, err)
		n := 0
		for range d.Select(sel) {
			n++
			break
		}
		require.Equal(t, 1, n)
	}
}

func TestSelectRaw(t *testing.T) {
	t.Parallel()
	for _, data := range []string{string(corpus(t)["nbformat-4.5"]), string(corpus(t)["crlf"]), "{\"cells\":\n[]}"} {
		d := parse(t, data)
		sel, err := notebook.ParseSelector("raw")
		require.NoError(t, err)
		for range 2 {
			var lines []string
			for line := range d.Select(sel) {
				lines = append(lines, line.Text)
				require.Equal(t, -1, line.Cell)
				require.Equal(t, len(lines), line.Number)
			}
			require.Equal(t, strings.TrimSuffix(string(d.Bytes()), "\n"), strings.Join(lines, "\n"))
			_, err = d.Append(code("edited"))
			require.NoError(t, err)
		}
	}
	sel, err := notebook.ParseSelector("raw:2-3")
	require.NoError(t, err)
	var lines []string
	for line := range notebook.New().Select(sel) {
		lines = append(lines, line.Text)
	}
	require.Equal(t, []string{` "cells": [],`, ` "metadata": {},`}, lines)
}

// The lines are those of the text, however it is cut.
func TestLinesAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := documentGen().Draw(t, "document")
		var lines []string
		for line := range d.Lines() {
			lines = append(lines, line.Text)
		}
		require.Equal(t, d.Text(), strings.Join(lines, "\n"))
	})
}

func TestParseSelector(t *testing.T) {
	t.Parallel()
	r := func(first, last int) notebook.LineRange { return notebook.LineRange{First: first, Last: last} }
	for text, want := range map[string]notebook.Selector{
		"":                        {},
		" ":                       {},
		"1":                       {Ranges: []notebook.LineRange{r(1, 1)}},
		"1-20,40-":                {Ranges: []notebook.LineRange{r(1, 20), r(40, 0)}},
		"40-, 1-20":               {Ranges: []notebook.LineRange{r(1, 20), r(40, 0)}},
		"1-3,4-6":                 {Ranges: []notebook.LineRange{r(1, 6)}},
		"5-9,7":                   {Ranges: []notebook.LineRange{r(5, 9)}},
		"5-,7,9-10":               {Ranges: []notebook.LineRange{r(5, 0)}},
		"3+4":                     {Ranges: []notebook.LineRange{r(3, 6)}},
		"-5":                      {Ranges: []notebook.LineRange{r(1, 5)}},
		"raw":                     {Raw: true},
		"raw:1-2":                 {Raw: true, Ranges: []notebook.LineRange{r(1, 2)}},
		"1-2:raw":                 {Raw: true, Ranges: []notebook.LineRange{r(1, 2)}},
		"007":                     {Ranges: []notebook.LineRange{r(7, 7)}},
		"1-2147483647,2147483647": {Ranges: []notebook.LineRange{r(1, 1<<31-1)}},
	} {
		got, err := notebook.ParseSelector(text)
		require.NoError(t, err, text)
		require.Empty(t, cmp.Diff(want, got), text)
		again, err := notebook.ParseSelector(got.String())
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got, again), text)
	}
	for _, text := range []string{"0", "a", "1-0", "3-2", "-", "1,", ",", "1--2", "+3", "3+", "3+0", "1.5", "raw:raw", "1:2", "--raw", "-0", "1 2", "１", "9223372036854775807+9", "99999999999999999999"} {
		_, err := notebook.ParseSelector(text)
		require.ErrorIs(t, err, notebook.ErrSelector, text)
	}
}

func TestSelectorAgreesWithItsRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type part struct{ first, last int }
		parts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) part {
			first := rapid.IntRange(1, 30).Draw(t, "first")
			return part{first, first + rapid.IntRange(0, 10).Draw(t, "more")}
		}), 1, 6).Draw(t, "parts")
		var sel notebook.Selector
		for _, p := range parts {
			sel.Ranges = append(sel.Ranges, notebook.LineRange{First: p.first, Last: p.last})
		}
		parsed, err := notebook.ParseSelector(sel.String())
		require.NoError(t, err)
		for line := range 50 {
			want := slices.ContainsFunc(parts, func(p part) bool { return p.first <= line && line <= p.last })
			require.Equal(t, want, parsed.Contains(line), "%s: line %d", sel, line)
		}
	})
}

func TestSplitPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"a.ipynb":          {"a.ipynb", ""},
		"a.ipynb:1-20,40-": {"a.ipynb", "1-20,40-"},
		"a.ipynb:raw":      {"a.ipynb", "raw"},
		"a.ipynb:raw:1-2":  {"a.ipynb", "raw:1-2"},
		`C:\x\A.IPYNB:3`:   {`C:\x\A.IPYNB`, "3"},
		`C:\x\a.ipynb`:     {`C:\x\a.ipynb`, ""},
		"a.txt:3":          {"a.txt:3", ""},
		"é.ipynb:1":        {"é.ipynb", "1"},
	} {
		path, selector := notebook.SplitPath(text)
		require.Equal(t, want, [2]string{path, selector}, text)
	}
}

func TestSplitLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"": {}, "a": {"a"}, "a\n": {"a\n"}, "\n": {"\n"}, "a\nb": {"a\n", "b"}, "a\n\nb\n": {"a\n", "\n", "b\n"}, "a\r\nb": {"a\r\n", "b"},
	} {
		require.Equal(t, want, notebook.SplitLines(text))
		require.Equal(t, text, strings.Join(notebook.SplitLines(text), ""))
	}
}

// TestScriptsAreTold from the text of a notebook by what stands before the first marker,
// and by markdown that is commented out.
func TestScriptsAreTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"# -*- coding: utf-8 -*-\n# %% [markdown]\n# words\n":    {"words"},
		"#!/usr/bin/env python3\n# %%\nx = 1\n":                  {"x = 1"},
		"\"\"\"What it does.\"\"\"\n\n# %%\nx = 1\n":             {"\"\"\"What it does.\"\"\"", "x = 1"},
		"import os\n# %% [markdown]\n# words\n":                  {"import os", "words"},
		"# %% [markdown]\n# words\n# and more\n":                 {"words\nand more"},
		"# %% [markdown]\n# # Title\n":                           {"# Title"},
		"# %% [markdown]\n# Title\n":                             {"# Title"}, // a heading of the view
		"# %% [markdown]\n# Title\n\nwords\n# One\n# Two\n":      {"# Title\n\nwords\n# One\n# Two"},
		"# %% [markdown] cell:0\n# words\n# and more\n":          {"# words\n# and more"},
		"# %% [code] cell:0\nx = 1\n# %% [markdown]\n# a\n# b\n": {"x = 1", "# a\n# b"},
	} {
		got, err := notebook.ParseText(strings.TrimSuffix(text, "\n"), notebook.FormatAuto)
		require.NoError(t, err, text)
		var sources []string
		for _, c := range got.Cells {
			sources = append(sources, c.Source)
		}
		require.Equal(t, want, sources, text)
	}
}
