package notebook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// question is one line for testdata/official.py.
type question struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

// askNbformat puts questions to the official nbformat package and returns its
// answers in order.
func askNbformat(t testing.TB, questions []question) []json.RawMessage {
	t.Helper()
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, q := range questions {
		require.NoError(t, enc.Encode(q))
	}
	cmd := exec.CommandContext(t.Context(), testPython(t), "-B", "testdata/official.py")
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Len(t, lines, len(questions), stderr.String())
	answers := make([]json.RawMessage, len(lines))
	for i, line := range lines {
		answers[i] = json.RawMessage(line)
	}
	return answers
}

// verdicts asks whether notebooks are valid; an empty verdict is yes.
func verdicts(t testing.TB, notebooks []string) []string {
	t.Helper()
	questions := make([]question, len(notebooks))
	for i, nb := range notebooks {
		questions[i] = question{Do: "validate", Text: nb}
	}
	out := make([]string, len(notebooks))
	for i, answer := range askNbformat(t, questions) {
		require.NoError(t, json.Unmarshal(answer, &out[i]))
	}
	return out
}

// testPython returns an interpreter that has nbformat.
func testPython(t testing.TB) string {
	t.Helper()
	if python := os.Getenv("COPPICE_TEST_PYTHON"); python != "" {
		return python
	}
	name := "bin/python"
	if runtime.GOOS == "windows" {
		name = `Scripts\python.exe`
	}
	python, err := filepath.Abs(filepath.Join("..", ".cache", "python", name))
	require.NoError(t, err)
	_, err = os.Stat(python)
	require.NoError(t, err, "this test needs a Python with nbformat: run make test-env, or set COPPICE_TEST_PYTHON")
	return python
}
