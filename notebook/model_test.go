package notebook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/notebook"
)

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
