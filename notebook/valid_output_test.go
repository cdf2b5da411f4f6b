package notebook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// Whatever this package writes is valid to nbformat: each kind of edit, on
// each notebook of the corpus that is valid to begin with.
func TestWhatIsWrittenIsValidToNbformat(t *testing.T) {
	t.Parallel()
	var names, texts []string
	add := func(name string, d *notebook.Document) {
		names, texts = append(names, name), append(texts, strings.TrimPrefix(string(d.Bytes()), "\ufeff"))
	}
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		if name == "future-4.7" || d.UpgradedFrom() == 0 && len(errorsOnly(string(data))) > 0 {
			continue
		}
		d.Upgrade()
		add(name+" upgraded", d)
		for edit, f := range edits(t) {
			e := d.Clone()
			if len(texts)%2 == 0 {
				e = parse(t, string(data)) // in the format that it came in
			}
			f(e)
			add(fmt.Sprintf("%s %s", name, edit), e)
		}
	}
	require.Greater(t, len(texts), 500)
	for i, verdict := range verdicts(t, texts) {
		require.Empty(t, verdict, "%s\n%s", names[i], texts[i])
		require.Empty(t, errorsOnly(texts[i]), names[i])
	}
}

// edits are the operations of the package, each on a whole notebook.
func edits(t *testing.T) map[string]func(*notebook.Document) {
	t.Helper()
	each := func(f func(d *notebook.Document, ref notebook.Ref)) func(*notebook.Document) {
		return func(d *notebook.Document) {
			for i := range d.Len() {
				f(d, notebook.At(i))
			}
		}
	}
	must := func(err error) { require.NoError(t, err) }
	return map[string]func(*notebook.Document){
		"source": each(func(d *notebook.Document, ref notebook.Ref) {
			_, err := d.SetSource(ref, "new\nü \x00 text\n")
			must(err)
		}),
		"code": each(func(d *notebook.Document, ref notebook.Ref) { _, err := d.SetType(ref, notebook.Code); must(err) }),
		"raw":  each(func(d *notebook.Document, ref notebook.Ref) { _, err := d.SetType(ref, notebook.Raw); must(err) }),
		"tags": each(func(d *notebook.Document, ref notebook.Ref) { must(d.AddTags(ref, "x", "y")) }),
		"insert": func(d *notebook.Document) {
			_, err := d.Insert(0, code("a"), markdown("b"), notebook.NewCell{Type: notebook.Raw, Tags: []string{"t"}})
			must(err)
		},
		"apply": func(d *notebook.Document) {
			apply(t, d, "# %% [markdown]\nx\n# %% [code] cell:1\ny\n# %% [markdown] cell:0\nz\n# %% [raw] cell:0")
		},
		"percent": func(d *notebook.Document) {
			_, err := d.ApplyText("# %% [markdown] tags=[\"a\"]\n# x\n# %% Title\ny\n", &notebook.ApplyOptions{Format: notebook.FormatPercent})
			must(err)
		},
		"join": func(d *notebook.Document) {
			if d.Len() > 1 {
				_, err := d.Join(notebook.At(0), d.Len())
				must(err)
			}
		},
		"split": func(d *notebook.Document) {
			for i := d.Len() - 1; i >= 0; i-- {
				if strings.Contains(strings.TrimSuffix(d.Cell(i).Source(), "\n"), "\n") {
					_, err := d.Split(notebook.At(i), 2)
					must(err)
				}
			}
		},
		"strip": func(d *notebook.Document) { d.Strip(&notebook.StripOptions{Force: true}) },
		"parameters": func(d *notebook.Document) {
			if l := d.Language(); l == "" || l == "python" {
				_, err := d.SetParameters(notebook.Parameter{Name: "x", Value: 1})
				must(err)
			}
		},
		"record": func(d *notebook.Document) {
			r := notebook.NewRecorder(d)
			for i, c := range d.Cells() {
				if c.Type() != notebook.Code {
					continue
				}
				rec, err := r.Begin(notebook.At(i))
				must(err)
				rec.Stream("stdout", "x\n")
				rec.Display(notebook.Bundle{"image/png": notebook.ImageValue([]byte("x")), "text/plain": json.RawMessage("1")}, nil, "d")
				rec.Result(1, plain("x"), nil, "")
				rec.Error("E", "v", []string{"t"})
				if i%2 == 0 {
					rec.Clear(true)
				}
				rec.Update("d", plain("y"), json.RawMessage(`[]`))
				rec.Finish(i+1, notebook.Timing{})
			}
		},
		"merge": func(d *notebook.Document) {
			theirs := d.Clone()
			_, err := theirs.Append(code("theirs"))
			must(err)
			merged, _ := notebook.Merge(d, d, theirs, nil)
			*d = *merged
		},
	}
}
