package toolbox

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

//go:embed tool.py
var script string

// Tool says which tool to write. The zero value of a field is its default.
type Tool struct {
	// ID is the id and the name of the folder. Required.
	ID string
	// Set replaces keys of tool.json; a nil value removes one.
	Set map[string]any
	// Env is the text of the .env file. START says how the tool starts; see
	// tool.py.
	Env string
	// Main replaces main.py.
	Main string
	// NoVenv leaves the virtual environment out.
	NoVenv bool
	// Stream makes it a tool with outputs that stream.
	Stream bool
}

// mark is the variable by which Processes finds what a tool started.
const mark = "TOOLBOX_MARK"

// Box is a folder of tools.
type Box struct {
	// Dir is the folder.
	Dir string
	// Mark is in the environment of every process of a tool in the box, as
	// TOOLBOX_MARK.
	Mark string
	tb   testing.TB
}

// New makes an empty folder of tools.
func New(tb testing.TB) *Box {
	tb.Helper()
	return &Box{Dir: tb.TempDir(), Mark: messages.NewID(), tb: tb}
}

// Add writes a tool and returns its folder.
func (b *Box) Add(t Tool) string {
	b.tb.Helper()
	dir := filepath.Join(b.Dir, t.ID)
	require.NoError(b.tb, os.MkdirAll(dir, 0o700))
	spec := map[string]any{
		"id": t.ID, "name": t.ID, "max_runtime_seconds": 600, "max_memory_mb": 0,
		"inputs": []any{
			map[string]any{"key": "do", "label": "Do", "type": "text", "default": "echo"},
			map[string]any{"key": "arg", "label": "Argument", "type": "json", "required": false},
		},
		"outputs": []any{map[string]any{"key": "result", "label": "Result", "type": "tree"}},
	}
	if t.Stream {
		spec["outputs"] = []any{map[string]any{"key": "result", "label": "Result", "type": "stream_text"}}
	}
	for k, v := range t.Set {
		if v == nil {
			delete(spec, k)
		} else {
			spec[k] = v
		}
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	require.NoError(b.tb, err)
	b.Write(t.ID, "tool.json", string(data))
	if t.Main == "" {
		t.Main = script
	}
	b.Write(t.ID, "main.py", t.Main)
	b.Write(t.ID, ".env", mark+"="+b.Mark+"\n"+t.Env+"\n")
	b.Write(t.ID, "pyproject.toml", "[project]\nname = \""+t.ID+"\"\nversion = \"1\"\ndependencies = []\n")
	if !t.NoVenv {
		b.Venv(t.ID)
	}
	return dir
}

// Write writes a file of a tool.
func (b *Box) Write(id, name, text string) {
	b.tb.Helper()
	require.NoError(b.tb, os.WriteFile(filepath.Join(b.Dir, id, name), []byte(text), 0o600))
}

// Venv makes what passes for a virtual environment.
func (b *Box) Venv(id string) {
	b.tb.Helper()
	bin := filepath.Join(b.Dir, id, ".venv", "bin")
	require.NoError(b.tb, os.MkdirAll(bin, 0o700))
	require.NoError(b.tb, os.Symlink(testpython.Path(b.tb), filepath.Join(bin, "python")))
}

// Inputs are inputs that make a tool do something.
func Inputs(do string, arg ...any) json.RawMessage {
	in := map[string]any{"do": do}
	if len(arg) > 0 {
		in["arg"] = arg[0]
	}
	data, err := json.Marshal(in)
	if err != nil {
		panic(err) // of a test's own values
	}
	return data
}

// Lines counts the lines of a file of a tool; 0 when there is none.
func (b *Box) Lines(id, name string) int {
	b.tb.Helper()
	data, err := os.ReadFile(filepath.Join(b.Dir, id, name))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(b.tb, err)
	return strings.Count(string(data), "\n")
}

// Script is the program of a tool that has none of its own.
func Script() string { return script }
