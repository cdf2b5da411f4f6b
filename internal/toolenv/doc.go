// Package toolenv makes the virtual environment of a tool: the folder .venv
// beside its tool.json.
//
// # Guarantees
//
//   - What is installed is what requirements.txt pins; when that file has hashes
//     every package is checked against them. Without the file, it is what
//     pyproject.toml depends on. A tool that needs no package gets an
//     environment without pip, in a tenth of a second.
//   - An environment that matches these files is left alone. One that was not
//     finished is made again.
//   - Runs for one tool at the same time wait for each other.
//   - Nothing is written outside of the tool's folder but by pip's own cache.
//
// All functions may be called from any goroutine.
package toolenv
