package notebook

import "bytes"

// Emit writes the document from its tree, even when nothing was edited and
// Bytes would return what was read.
func Emit(d *Document) []byte {
	var b bytes.Buffer
	_, _ = d.emit(&b) // a buffer takes everything
	return b.Bytes()
}

// EmitExpanded is Emit of a copy in which every container was taken apart.
func EmitExpanded(d *Document) []byte {
	c := d.Clone()
	expandAll(c.root)
	return Emit(c)
}

func expandAll(n *node) {
	n.expand()
	for _, it := range n.items {
		expandAll(it.val)
	}
}

// BeforeRename makes Save call f under the lock, just before the notebook is
// replaced.
func (f *File) BeforeRename(hook func()) { f.beforeRename = hook }

// LockPath is the lock file of the notebook at a path.
func (f *File) LockPath() string { return lockPath(f.real) }

// Matched is a pair of places that a longest common subsequence matches.
type Matched struct{ A, B int }

// LCS is lcs on strings.
func LCS(a, b []string) []Matched {
	var out []Matched
	for _, p := range lcs(a, b) {
		out = append(out, Matched{p.a, p.b})
	}
	return out
}

// MergeText is mergeText with the labels "ours" and "theirs".
func MergeText(base, ours, theirs string) (string, bool) {
	return mergeText(base, ours, theirs, [2]string{"ours", "theirs"})
}

// FoldProgress is foldProgress on strings.
func FoldProgress(s string) string { return string(foldProgress([]byte(s))) }

// EqualCells reports whether two cells are equal in everything but layout.
func EqualCells(a, b *Cell) bool {
	_, differs := compareCells(a, b)
	return !differs
}

// Outline is what an outline keeps of a notebook: strings of up to limit bytes
// are kept, and window bytes are read at a time.
func Outline(data []byte, limit, window int) ([]byte, error) {
	return outline(bytes.NewReader(data), limit, make([]byte, window))
}
