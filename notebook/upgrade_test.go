package notebook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// An old notebook is upgraded to what nbformat's own converter makes of it.
func TestUpgradeIsNbformats(t *testing.T) {
	t.Parallel()
	var names []string
	var questions []question
	for name, data := range corpus(t) {
		if d := parse(t, string(data)); d.UpgradedFrom() != 0 {
			names = append(names, name)
			questions = append(questions, question{Do: "upgrade", Text: string(data)})
		}
	}
	require.Len(t, names, 3)
	for i, answer := range official.ask(t, questions) {
		d := parse(t, questions[i].Text)
		require.False(t, d.Edited())
		require.Equal(t, questions[i].Text, string(d.Bytes()), "unedited, it is written as it was")
		require.True(t, d.Upgrade())
		require.False(t, d.Upgrade())
		require.Empty(t, d.Validate())
		var want, got any
		require.NoError(t, json.Unmarshal(answer, &want))
		require.NoError(t, json.Unmarshal(d.Bytes(), &got))
		for _, c := range got.(map[string]any)["cells"].([]any) {
			delete(c.(map[string]any), "id")
		}
		require.Empty(t, cmp.Diff(want, got), names[i])
		again := parse(t, questions[i].Text)
		again.Upgrade()
		require.Equal(t, string(d.Bytes()), string(again.Bytes()), "the ids are the same each time")
	}
}

func TestAnEditUpgradesAnOldNotebook(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["nbformat-3.0-plain"]))
	require.Equal(t, 3, d.UpgradedFrom())
	require.Equal(t, []notebook.CellType{"markdown", "markdown", "raw", "markdown", "code", "code"}, types(d))
	_, err := d.SetSource(notebook.At(0), "# New")
	require.NoError(t, err)
	again := parse(t, string(d.Bytes()))
	require.Zero(t, again.UpgradedFrom())
	major, minor := again.Version()
	require.Equal(t, []int{4, 5}, []int{major, minor})
	require.Equal(t, ids(d), ids(again))
	require.Empty(t, again.Validate())
}

func TestUpgradeAddsIDsAndKeepsThem(t *testing.T) {
	t.Parallel()
	d := parse(t, string(corpus(t)["nbformat-4.2"]))
	require.Zero(t, d.AddMissingIDs(), "4.2 has none")
	require.True(t, d.Upgrade())
	before := ids(d)
	for _, id := range before {
		require.Regexp(t, "^[0-9a-f]{8}$", id)
	}
	require.False(t, d.Upgrade())
	require.Equal(t, before, ids(parse(t, string(d.Bytes()))))
	require.Empty(t, d.Validate())
	holes := parse(t, `{"cells": [{"cell_type": "raw", "id": "keep", "metadata": {}, "source": ""}, {"cell_type": "raw", "metadata": {}, "source": ""}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`)
	require.Equal(t, 1, holes.AddMissingIDs())
	require.Equal(t, "keep", holes.Cell(0).ID())
	require.Empty(t, holes.Validate())
}

// Sources, outputs and metadata mean to nbformat what they mean here.
func TestNbformatReadsWhatWeRead(t *testing.T) {
	t.Parallel()
	var questions []question
	var names []string
	for name, data := range corpus(t) {
		if d := parse(t, string(data)); d.UpgradedFrom() != 0 || strings.HasPrefix(string(data), "\ufeff") || len(errorsOnly(string(data))) > 0 || strings.Contains(name, "surrogate") {
			continue
		}
		names = append(names, name)
		questions = append(questions, question{Do: "read", Text: string(data)})
	}
	for i, answer := range official.ask(t, questions) {
		var nb struct {
			Cells []struct {
				Type   string `json:"cell_type"`
				Source string `json:"source"`
			} `json:"cells"`
		}
		answer = json.RawMessage(strings.NewReplacer("-Infinity", "1", "Infinity", "1", "NaN", "1").Replace(string(answer)))
		require.NoError(t, json.Unmarshal(answer, &nb), "%s: %.200s", names[i], answer)
		d := parse(t, questions[i].Text)
		var want []string
		for _, c := range nb.Cells {
			want = append(want, c.Type+" "+c.Source)
		}
		var got []string
		for _, c := range d.Cells() {
			got = append(got, string(c.Type())+" "+c.Source())
		}
		require.Equal(t, want, got, names[i])
	}
}
