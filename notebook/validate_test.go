package notebook_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func problems(t testing.TB, data string) []string {
	t.Helper()
	out := []string{}
	for _, p := range notebook.ValidBytes([]byte(data)) {
		out = append(out, p.String())
	}
	return out
}

// errorsOnly returns the problems that are errors.
func errorsOnly(data string) []notebook.Problem {
	return slices.DeleteFunc(notebook.ValidBytes([]byte(data)), func(p notebook.Problem) bool {
		return p.Severity != notebook.SeverityError
	})
}

func TestProblemsHavePathsAndReasons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, data string
		want       []string
	}{
		{"bare", `{"cells": []}`, []string{
			`error: $: "nbformat" is missing`, `error: $: "nbformat_minor" is missing`, `error: $: "metadata" is missing`,
		}},
		{"root", `{"cells": [], "metadata": [], "nbformat": "4", "nbformat_minor": 1.0, "x y": 1}`, []string{
			`error: $["x y"]: nbformat 4.0 has no such member here`, `error: $.nbformat: expected a number, found a string`,
			`error: $.nbformat_minor: expected an integer, found 1.0`, `error: $.metadata: expected an object, found an array`,
		}},
		{"metadata", `{"cells": [], "metadata": {"kernelspec": {"name": 1}, "language_info": {"codemirror_mode": 1, "version": 3}, "orig_nbformat": 0, "title": 1, "authors": {}}, "nbformat": 4, "nbformat_minor": 2}`, []string{
			`error: $.metadata.kernelspec.name: expected a string, found a number`, `error: $.metadata.kernelspec: "display_name" is missing`,
			`error: $.metadata.language_info: "name" is missing`, `error: $.metadata.language_info.codemirror_mode: expected a string or an object, found a number`,
			`error: $.metadata.orig_nbformat: 0 is below 1`, `error: $.metadata.title: expected a string, found a number`, `error: $.metadata.authors: expected an array, found an object`,
		}},
		{"cells", `{"cells": [
			{"cell_type": "code", "id": "a b", "metadata": {}, "source": ["x", 1], "outputs": {}, "execution_count": -1, "attachments": {}},
			{"cell_type": "markdown", "metadata": {"tags": ["a,b", "c", "c", 1, ""], "name": ""}, "source": null, "outputs": []},
			{"cell_type": "raw", "id": "r", "metadata": {"format": 1, "jupyter": 1}, "source": "", "attachments": {"a": {"image/png": 1, "application/json": 1}, "b": 1}}
		], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`, []string{
			`error: $.cells[0].id: "a b" is not 1 to 64 characters of a-z A-Z 0-9 - _`,
			`error: $.cells[0].attachments: nbformat 4.5 has no such member here`,
			`error: $.cells[0].source[1]: expected a string, found a number`,
			`error: $.cells[0].execution_count: -1 is below 0`, `error: $.cells[0].outputs: expected an array, found an object`,
			`error: $.cells[1]: "id" is missing`, `error: $.cells[1].outputs: nbformat 4.5 has no such member here`,
			`error: $.cells[1].metadata.name: a name is one line that is not empty`,
			`error: $.cells[1].metadata.tags[0]: tag "a,b" holds a comma`, `error: $.cells[1].metadata.tags[2]: tag "c" is repeated`,
			`error: $.cells[1].metadata.tags[3]: expected a string, found a number`, `error: $.cells[1].metadata.tags[4]: a tag is empty`,
			`error: $.cells[1].source: expected a string or an array, found null`,
			`error: $.cells[2].metadata.jupyter: expected an object, found a number`, `error: $.cells[2].metadata.format: expected a string, found a number`,
			`error: $.cells[2].attachments.a["image/png"]: expected a string or an array, found a number`,
			`error: $.cells[2].attachments.b: expected an object, found a number`,
		}},
		{"outputs", `{"cells": [{"cell_type": "code", "metadata": {"collapsed": 1, "scrolled": "yes", "execution": {"a": 1}}, "source": "", "execution_count": null, "outputs": [
			1, {}, {"output_type": 1}, {"output_type": "pyout"}, {"output_type": "stream", "name": "x"}, {"output_type": "error", "ename": "", "evalue": "", "traceback": [1], "more": 1},
			{"output_type": "execute_result", "data": {"text/plain": {}}, "metadata": {}}, {"output_type": "display_data", "data": {}, "metadata": null}
		]}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`, []string{
			`error: $.cells[0].metadata.collapsed: expected a boolean, found a number`, `error: $.cells[0].metadata.scrolled: expected a boolean or "auto", found "yes"`,
			`error: $.cells[0].metadata.execution.a: expected a string, found a number`,
			`error: $.cells[0].outputs[0]: expected an object, found a number`, `error: $.cells[0].outputs[1]: "output_type" is missing`,
			`error: $.cells[0].outputs[2].output_type: expected a string, found a number`,
			`error: $.cells[0].outputs[3].output_type: "pyout" is not stream, display_data, execute_result or error`,
			`error: $.cells[0].outputs[4]: "text" is missing`, `error: $.cells[0].outputs[5].more: nbformat 4.4 has no such member here`,
			`error: $.cells[0].outputs[5].traceback[0]: expected a string, found a number`,
			`error: $.cells[0].outputs[6].data["text/plain"]: expected a string or an array, found an object`,
			`error: $.cells[0].outputs[6]: "execution_count" is missing`, `error: $.cells[0].outputs[7].metadata: expected an object, found null`,
		}},
		{"ids", string(corpus(t)["duplicate-ids-4.5"]), []string{`error: $.cells[1].id: "x" is the id of cell 0 too`}},
		{"ids too early", `{"cells": [{"cell_type": "raw", "id": "x", "metadata": {}, "source": ""}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`, []string{`error: $.cells[0].id: nbformat 4.4 has no such member here`}},
		{"names", `{"cells": [{"cell_type": "raw", "metadata": {"name": "n"}, "source": ""}, {"cell_type": "raw", "metadata": {"name": "n"}, "source": ""}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}`, []string{`warning: $.cells[1].metadata.name: "n" is the name of cell 0 too`}},
		{"twice", `{"cells": [], "metadata": {"a": 1, "a": 2}, "nbformat": 4, "nbformat_minor": 4}`, []string{`warning: $.metadata.a: the name occurs twice; the last one counts`}},
		{"NaN", `{"cells": [], "metadata": {"a": NaN}, "nbformat": 4, "nbformat_minor": 4}`, []string{`warning: $: NaN or Infinity at offset 32, which JSON does not have; Python reads it, browsers do not`}},
		{"later minor", string(corpus(t)["future-4.7"]), []string{}},
		{"version 3", `{"worksheets": [{"cells": [
			{"cell_type": "heading", "source": "T", "level": 0},
			{"cell_type": "code", "input": "1", "outputs": [{"output_type": "pyout", "text": "1"}, {"output_type": "stream", "text": "1"}, {"output_type": "x"}]},
			{"cell_type": "raw", "source": 1, "metadata": {"tags": ["a,b"]}}
		], "name": "x"}]}`, []string{
			`error: $: "nbformat" is missing`, `error: $: "nbformat_minor" is missing`, `error: $: "metadata" is missing`,
			`error: $.worksheets[0].name: nbformat 3.0 has no such member here`,
			`error: $.worksheets[0].cells[0].level: 0 is below 1`,
			`error: $.worksheets[0].cells[1]: "language" is missing`,
			`error: $.worksheets[0].cells[1].outputs[0]: "prompt_number" is missing`,
			`error: $.worksheets[0].cells[1].outputs[1]: "stream" is missing`,
			`error: $.worksheets[0].cells[1].outputs[2].output_type: "x" is not pyout, display_data, stream or pyerr`,
			`error: $.worksheets[0].cells[2].source: expected a string or an array, found a number`,
			`error: $.worksheets[0].cells[2].metadata.tags[0]: tag "a,b" holds a comma`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(tt.want, problems(t, tt.data)))
		})
	}
}

// The verdict on each file of the corpus is nbformat's.
func TestVerdictsOnTheCorpusAreNbformats(t *testing.T) {
	t.Parallel()
	var names, texts []string
	for name, data := range corpus(t) {
		if name == "no-nbformat" || strings.HasPrefix(string(data), "\ufeff") {
			continue // what Python's json or the schema's version cannot be asked about
		}
		names, texts = append(names, name), append(texts, string(data))
	}
	for i, verdict := range verdicts(t, texts) {
		found := errorsOnly(texts[i])
		require.Equal(t, verdict == "", len(found) == 0, "%s: nbformat says %q, we say %v", names[i], verdict, found)
	}
}

// Notebooks with one thing wrong or odd: the verdict is nbformat's each time.
func TestVerdictsOnMutationsAreNbformats(t *testing.T) {
	t.Parallel()
	var texts []string
	rng := rand.New(rand.NewPCG(1, 2))
	for name, data := range corpus(t) {
		d := parse(t, string(data))
		if d.UpgradedFrom() != 0 || strings.Contains(name, "nan") || strings.Contains(name, "surrogate") || strings.Contains(name, "numbers") || name == "future-4.7" {
			continue
		}
		for range 16 {
			var tree map[string]any
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(string(data), "\ufeff")), &tree))
			tree["nbformat"] = 4
			if _, ok := tree["nbformat_minor"]; !ok || rng.IntN(4) == 0 {
				tree["nbformat_minor"] = rng.IntN(6)
			}
			mutate(rng, tree)
			text, err := json.Marshal(tree)
			require.NoError(t, err)
			if minor, ok := tree["nbformat_minor"].(float64); ok && minor > 5 {
				continue
			}
			if _, err := notebook.Parse(text); err == nil {
				texts = append(texts, string(text))
			}
		}
	}
	require.Greater(t, len(texts), 500)
	valid := 0
	for i, verdict := range verdicts(t, texts) {
		found := errorsOnly(texts[i])
		require.Equal(t, verdict == "", len(found) == 0, "nbformat says %q, we say %v\n%s", verdict, found, texts[i])
		if verdict == "" {
			valid++
		}
	}
	require.Greater(t, valid, 50, "some of the mutations must be harmless")
	require.Less(t, valid, len(texts)-50, "some of the mutations must do harm")
}

// Notebooks of version 3 are checked by its schema, as they are in their file, and by
// that of 4.5 once they are edited.
func TestVerdictsOnVersion3AreNbformats(t *testing.T) {
	t.Parallel()
	var texts []string
	rng := rand.New(rand.NewPCG(3, 4))
	for name, data := range corpus(t) {
		if parse(t, string(data)).UpgradedFrom() == 0 {
			continue
		}
		for range 200 {
			var tree map[string]any
			require.NoError(t, json.Unmarshal(data, &tree), name)
			mutate(rng, tree)
			text, err := json.Marshal(tree)
			require.NoError(t, err)
			d, err := notebook.Parse(text)
			if err != nil {
				continue
			}
			texts = append(texts, string(text))
			if tree["metadata"] == nil {
				require.NotEmpty(t, d.Validate())
				require.True(t, d.Upgrade())
				for _, p := range d.Validate() {
					require.NotContains(t, p.Reason, "\"metadata\" is missing")
				}
			}
		}
	}
	require.Greater(t, len(texts), 400)
	valid := 0
	for i, verdict := range verdicts(t, texts) {
		found := errorsOnly(texts[i])
		require.Equal(t, verdict == "", len(found) == 0, "nbformat says %q, we say %v\n%s", verdict, found, texts[i])
		if verdict == "" {
			valid++
		}
	}
	require.Greater(t, valid, 50)
	require.Less(t, valid, len(texts)-50)
}

// mutate changes one place of a notebook: it removes, adds or replaces a
// member or an element, anywhere but in nbformat and in the cells' types.
func mutate(rng *rand.Rand, tree map[string]any) {
	var at func(v any, depth int) bool
	values := []any{
		nil, true, 1, -1, 0, 1.5, "", "x", "a,b", "auto",
		[]any{},
		[]any{"a", "a"},
		[]any{1},
		map[string]any{},
		map[string]any{"text/plain": 1},
		map[string]any{"name": "x"},
		map[string]any{"name": "x", "display_name": "y"},
		[]any{map[string]any{"output_type": "stream", "name": "stdout", "text": "x"}},
	}
	keys := []string{
		"extra", "id", "metadata", "outputs", "execution_count", "attachments", "tags", "name", "jupyter", "execution", "collapsed", "scrolled", "format",
		"kernelspec", "language_info", "codemirror_mode", "title", "authors", "orig_nbformat", "text", "data", "level", "language", "prompt_number", "input", "png", "a/b", "output_type", "ename", "traceback", "source", "image/png", "application/x+json",
	}
	at = func(v any, depth int) bool {
		switch v := v.(type) {
		case map[string]any:
			names := []string{}
			for name := range v {
				if name != "nbformat" && name != "cell_type" && name != "nbformat_minor" {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			if len(names) > 0 && rng.IntN(4) > 0 && at(v[names[rng.IntN(len(names))]], depth+1) {
				return true
			}
			switch choice := rng.IntN(3); {
			case choice == 0 && len(names) > 0:
				delete(v, names[rng.IntN(len(names))])
			case choice == 1 && len(names) > 0:
				v[names[rng.IntN(len(names))]] = values[rng.IntN(len(values))]
			default:
				v[keys[rng.IntN(len(keys))]] = values[rng.IntN(len(values))]
			}
			return true
		case []any:
			if len(v) > 0 {
				i := rng.IntN(len(v))
				if depth > 1 && rng.IntN(3) == 0 {
					v[i] = values[rng.IntN(len(values))]
					return true
				}
				return at(v[i], depth+1)
			}
		}
		return false
	}
	at(tree, 0)
}
