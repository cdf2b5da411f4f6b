package arch

import (
	"bytes"
	"path"
	"regexp"
)

// theMap is the document that says what is where.
const theMap = "ARCHITECTURE.md"

// named is a file in the map: a path, or a name alone where the row says the folder.
var named = regexp.MustCompile("`([\\w./-]+\\.(?:go|py|md))`")

// checkMap finds the files that the map names and that are not there.
func checkMap(t *Tree) []Violation {
	out := found{tree: t}
	file := t.File(theMap)
	if file == nil {
		return nil
	}
	names := map[string]bool{}
	for _, f := range t.Files {
		names[f.Path], names[path.Base(f.Path)] = true, true
	}
	for i, line := range bytes.Split(file.Src, []byte("\n")) {
		for _, m := range named.FindAllSubmatch(line, -1) {
			if name := string(m[1]); !names[name] {
				out.list = append(out.list, Violation{Path: theMap, Line: i + 1, Message: "names " + name + ", which is not there"})
			}
		}
	}
	return out.sorted()
}
