package notebook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// FuzzParse: whatever is read is JSON, is written back byte for byte, and can
// be edited; the result can be read again.
func FuzzParse(f *testing.F) {
	for _, data := range corpus(f) {
		f.Add(data)
	}
	for _, text := range []string{"", "{", `{"cells":[]}`, `{"cells":[{"cell_type":"raw"}]}`, "\xef\xbb\xbf{\"cells\" : [ ] }\n", `{"worksheets":[{"cells":[{"cell_type":"heading","level":9}]}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := notebook.Parse(data)
		plain := bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		if err != nil {
			var e *notebook.Error
			require.ErrorAs(t, err, &e)
			require.NotEmpty(t, e.Error())
			if errors.Is(err, notebook.ErrInvalidJSON) {
				require.False(t, utf8.Valid(plain) && json.Valid(plain), "it is JSON")
			}
			return
		}
		if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
			require.True(t, json.Valid(plain), "it is no JSON")
		}
		require.Equal(t, data, d.Bytes())
		if d.UpgradedFrom() == 0 {
			require.Equal(t, string(data), string(notebook.Emit(d)))
			require.Equal(t, string(data), string(notebook.EmitExpanded(d)))
		}
		before := sources(d)
		d.Validate()
		d.Clone().Strip(&notebook.StripOptions{Force: true})
		_, err = d.Insert(0, code("new\ncell"))
		require.NoError(t, err)
		for i := range d.Len() {
			_, err = d.SetSource(notebook.At(i), d.Cell(i).Source()+"\nmore")
			require.NoError(t, err)
		}
		again, err := notebook.Parse(d.Bytes())
		require.NoError(t, err)
		require.Equal(t, d.Text(), again.Text())
		require.Len(t, again.Cells(), len(before)+1)
		require.NoError(t, again.Delete(notebook.At(0)))
		for i, source := range before {
			require.Equal(t, source+"\nmore", again.Cell(i).Source())
		}
		report, err := again.ApplyText(again.Text(), nil)
		require.NoError(t, err)
		require.Empty(t, report.Deleted)
	})
}

// FuzzParseText: text that is read gives a notebook whose view, applied again,
// changes nothing; and text without indices is its own view but for them.
func FuzzParseText(f *testing.F) {
	for _, text := range []string{
		"", "# %% [code]", "# %% [code] cell:0\nx\n# %%% [raw]\n", "\ufeff# %% [raw] cell:0\r\na\r\n", "# %% [markdown]\n# T\n# %%\nx", "# ---\n# jupyter:\n#   kernelspec:\n#     name: x\n# ---\n# %% t\n",
		"# %% {\"a\": 1}\nx", "x\n# %% [code]", "# %% [code] cell:1\n# %% [code] cell:1\n# %% [raw] cell:99999999999999999999999\n", "# %% [md]\n\"\"\"\n# %%\n\"\"\"",
	} {
		f.Add(text, true)
		f.Add(text, false)
	}
	base := parse(f, threeCells)
	f.Fuzz(func(t *testing.T, text string, percent bool) {
		format := notebook.FormatCells
		if percent {
			format = notebook.FormatPercent
		}
		d := base.Clone()
		report, err := d.ApplyText(text, &notebook.ApplyOptions{Format: format})
		if err != nil {
			require.ErrorIs(t, err, notebook.ErrText)
			require.Equal(t, threeCells, string(d.Bytes()))
			return
		}
		require.Len(t, report.Cells, d.Len())
		data := string(d.Bytes())
		again := parse(t, data)
		require.Equal(t, d.Text(), again.Text())
		report, err = again.ApplyText(again.Text(), nil)
		require.NoError(t, err)
		require.False(t, report.Changed())
		require.Equal(t, data, string(again.Bytes()))
		require.Empty(t, errorsOnly(data))
		if !percent {
			if !strings.Contains(text, "\r") && !strings.HasPrefix(text, "\ufeff") && !strings.Contains(text, "cell:") {
				parsed, err := notebook.ParseText(again.Text(), notebook.FormatCells)
				require.NoError(t, err)
				original, err := notebook.ParseText(text, notebook.FormatCells)
				require.NoError(t, err)
				require.Len(t, parsed.Cells, len(original.Cells))
				for i, c := range original.Cells {
					require.Equal(t, c.Source, parsed.Cells[i].Source)
				}
			}
		}
		_, err = notebook.ParseText(again.Percent(nil), notebook.FormatPercent)
		require.NoError(t, err)
	})
}

// FuzzParseSelector: what is read is in order, and its text reads the same.
func FuzzParseSelector(f *testing.F) {
	for _, text := range []string{"", "1-20,40-", "3+7", "-5", "raw:1,2", "9-1", "0", "1,,2", "raw:raw", "99999999999999999999-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sel, err := notebook.ParseSelector(text)
		if err != nil {
			require.ErrorIs(t, err, notebook.ErrSelector)
			return
		}
		end := 0
		for i, r := range sel.Ranges {
			require.Greater(t, r.First, end)
			if r.Last == 0 {
				require.Equal(t, len(sel.Ranges)-1, i)
				break
			}
			require.GreaterOrEqual(t, r.Last, r.First)
			end = r.Last
			require.True(t, sel.Contains(r.First))
			require.True(t, sel.Contains(r.Last))
		}
		again, err := notebook.ParseSelector(sel.String())
		require.NoError(t, err)
		require.Equal(t, sel, again)
	})
}

// FuzzMergeText: merging is symmetric where it succeeds, and each side alone
// wins over an unchanged one.
func FuzzMergeText(f *testing.F) {
	f.Add("a\nb\nc", "a\nB\nc", "a\nb\nC")
	f.Add("", "x", "y\n")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		if len(base)+len(ours)+len(theirs) > 1<<12 || !utf8.ValidString(base+ours+theirs) {
			return
		}
		one, collidedOne := notebook.MergeText(base, ours, theirs)
		other, collidedOther := notebook.MergeText(base, theirs, ours)
		if !collidedOne && !collidedOther {
			require.Equal(t, strings.Count(one, "\n"), strings.Count(other, "\n"))
		}
		got, collided := notebook.MergeText(base, base, theirs)
		require.False(t, collided)
		require.Equal(t, theirs, got)
		got, collided = notebook.MergeText(base, ours, base)
		require.False(t, collided)
		require.Equal(t, ours, got)
	})
}
