package pysrc

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"
)

// Bootstrap is the code that an interpreter runs with -c. Its arguments are a
// role, "server" or "session", the length of what [Load] returns in bytes, the
// number of the socket on which that comes, and the numbers of the other
// descriptors.
//
//go:embed bootstrap.py
var Bootstrap string

//go:embed coppice_runner/*.py
var files embed.FS

// name is the Python package.
const name = "coppice_runner"

// modules are the sources by module name, with the file names that tracebacks
// would show.
var modules = sync.OnceValues(func() (map[string][2]string, error) {
	entries, err := files.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("list the embedded Python files: %w", err)
	}
	found := make(map[string][2]string, len(entries))
	for _, e := range entries {
		src, err := files.ReadFile(path.Join(name, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read an embedded Python file: %w", err)
		}
		module := name
		if base := strings.TrimSuffix(e.Name(), ".py"); base != "__init__" {
			module += "." + base
		}
		found[module] = [2]string{"<coppice>/" + e.Name(), string(src)}
	}
	return found, nil
})

// Load returns what Bootstrap waits for: one line of JSON. preload names modules that a
// fork server imports for its sessions.
func Load(preload []string) ([]byte, error) {
	m, err := modules()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(struct {
		Modules map[string][2]string `json:"modules"`
		Preload []string             `json:"preload,omitempty"`
	}{m, preload})
	if err != nil {
		return nil, fmt.Errorf("write the load line: %w", err)
	}
	return append(line, '\n'), nil
}
