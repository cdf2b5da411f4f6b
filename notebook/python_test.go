package notebook_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// official is the nbformat package of Python, in one process for all tests of
// the package: importing it takes longer than all questions do. The process
// starts with the first question; TestMain ends it.
var official nbformatProcess

func TestMain(m *testing.M) {
	code := m.Run()
	official.close()
	os.Exit(code)
}

// nbformatProcess runs testdata/official.py.
type nbformatProcess struct {
	// mu is held for a question and its answer, and guards the other fields.
	mu      sync.Mutex
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// question is one line for testdata/official.py.
type question struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

func (p *nbformatProcess) start(t testing.TB) {
	t.Helper()
	cmd := exec.Command(testPython(t), "-B", "testdata/official.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p.cmd, p.in, p.answers = cmd, in, bufio.NewReader(out)
}

// ask puts questions and returns the answers in order.
func (p *nbformatProcess) ask(t testing.TB, questions []question) []json.RawMessage {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		p.start(t)
	}
	answers := make([]json.RawMessage, len(questions))
	for i, q := range questions {
		line, err := json.Marshal(q)
		require.NoError(t, err)
		_, err = p.in.Write(append(line, '\n'))
		require.NoError(t, err)
		answer, err := p.answers.ReadBytes('\n')
		require.NoError(t, err, "the process ended; what it said is above")
		answers[i] = answer
	}
	return answers
}

// close ends the process by the end of its input, and waits for it.
func (p *nbformatProcess) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	}
}

// verdicts asks whether notebooks are valid; an empty verdict is yes.
func verdicts(t testing.TB, notebooks []string) []string {
	t.Helper()
	questions := make([]question, len(notebooks))
	for i, nb := range notebooks {
		questions[i] = question{Do: "validate", Text: nb}
	}
	out := make([]string, len(notebooks))
	for i, answer := range official.ask(t, questions) {
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
