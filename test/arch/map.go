package arch

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
)

// theMap is the document that says what is where.
const theMap = "ARCHITECTURE.md"

// named is a file in the map: a path, or a name alone where the row says the folder.
var named = regexp.MustCompile("`([\\w./-]+\\.(?:go|py|md))`")

// place is what a row of the map is about: a name in its first cell.
var place = regexp.MustCompile("`([^`]+)`")

// checkMap finds the files that the map names and that are not there, and what two rows of
// one table are about.
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
	rows := map[string]int{} // of the table that is being read: a name, and its line
	for i, line := range bytes.Split(file.Src, []byte("\n")) {
		cells := bytes.SplitN(line, []byte("|"), 3)
		if len(cells) < 3 || len(cells[0]) > 0 {
			clear(rows)
		} else {
			for _, m := range place.FindAllSubmatch(cells[1], -1) {
				name := string(m[1])
				if first := rows[name]; first > 0 && first != i+1 {
					out.list = append(out.list, Violation{Path: theMap, Line: i + 1, Message: fmt.Sprintf("has a second row about %s; the first is in line %d", name, first)})
				}
				rows[name] = i + 1
			}
		}
		for _, m := range named.FindAllSubmatch(line, -1) {
			if name := string(m[1]); !names[name] {
				out.list = append(out.list, Violation{Path: theMap, Line: i + 1, Message: "names " + name + ", which is not there"})
			}
		}
	}
	return out.sorted()
}
