package notebook

import (
	"slices"
	"strings"
)

// sketch is what is compared to decide which cells of two notebooks are the
// same cell.
type sketch struct {
	id     string
	typ    CellType
	source string
}

func sketches(cells []*Cell) []sketch {
	out := make([]sketch, len(cells))
	for i, c := range cells {
		out[i] = sketch{id: c.ID(), typ: c.typ, source: c.Source()}
	}
	return out
}

// align pairs the cells of two notebooks that are versions of one another. An
// id that occurs once on each side pairs two cells wherever they are. The
// others are paired in order: first those with equal type and source, then,
// between these and unless both have an id, those with sources that have half
// of their lines in common, then those that are alone between two pairs.
func align(a, b []sketch) []pair {
	pairs := alignIDs(a, b)
	takenA, takenB := make(map[int]bool), make(map[int]bool)
	for _, p := range pairs {
		takenA[p.a], takenB[p.b] = true, true
	}
	freeA, freeB := free(len(a), takenA), free(len(b), takenB)
	same := func(list []sketch, index []int) []sketch {
		out := make([]sketch, len(index))
		for i, j := range index {
			out[i] = sketch{typ: list[j].typ, source: list[j].source}
		}
		return out
	}
	equal := lcs(same(a, freeA), same(b, freeB))
	fromA, fromB := 0, 0
	for _, p := range append(equal, pair{len(freeA), len(freeB)}) {
		pairs = append(pairs, alignGap(a, b, freeA[fromA:p.a], freeB[fromB:p.b])...)
		if p.a < len(freeA) {
			pairs = append(pairs, pair{freeA[p.a], freeB[p.b]})
		}
		fromA, fromB = p.a+1, p.b+1
	}
	slices.SortFunc(pairs, func(x, y pair) int { return x.a - y.a })
	return pairs
}

func free(n int, taken map[int]bool) []int {
	var out []int
	for i := range n {
		if !taken[i] {
			out = append(out, i)
		}
	}
	return out
}

func alignIDs(a, b []sketch) []pair {
	const several = -2
	index := func(list []sketch) map[string]int {
		m := make(map[string]int, len(list))
		for i, s := range list {
			if _, ok := m[s.id]; ok {
				i = several
			}
			m[s.id] = i
		}
		return m
	}
	inA, inB := index(a), index(b)
	var pairs []pair
	for i, s := range a {
		if s.id == "" || inA[s.id] == several {
			continue
		}
		if j, ok := inB[s.id]; ok && j != several {
			pairs = append(pairs, pair{i, j})
		}
	}
	return pairs
}

// alignGap pairs cells between two pairs of equal ones. The gap of an ordinary
// edit is small; in a large one, the work is bounded by looking at a window.
func alignGap(a, b []sketch, inA, inB []int) []pair {
	const window = 50
	var pairs []pair
	bags := make([]bag, len(inB))
	next := 0
	for n, i := range inA {
		lines := newBag(a[i].source)
		best, bestScore := -1, 0.0
		for j := next; j < min(len(inB), next+window); j++ {
			if !maySucceed(a[i], b[inB[j]]) {
				continue
			}
			if bags[j].lines == nil {
				bags[j] = newBag(b[inB[j]].source)
			}
			if score := lines.similarity(bags[j]); score >= 0.5 && score > bestScore {
				best, bestScore = j, score
			}
		}
		if best < 0 && len(inA)-n == 1 && len(inB)-next == 1 && maySucceed(a[i], b[inB[next]]) {
			best = next
		}
		if best >= 0 {
			pairs = append(pairs, pair{i, inB[best]})
			next = best + 1
		}
	}
	return pairs
}

// maySucceed reports whether b can be a later version of a. Two cells that both
// have an id, and not the same one, are two cells.
func maySucceed(a, b sketch) bool { return a.typ == b.typ && (a.id == "" || b.id == "") }

// bag counts the lines of a text.
type bag struct {
	lines map[string]int
	total int
}

func newBag(text string) bag {
	b := bag{lines: make(map[string]int)}
	for _, line := range SplitLines(text) {
		b.lines[strings.TrimSuffix(line, "\n")]++
		b.total++
	}
	return b
}

// similarity is the share of lines that two texts have in common in any order,
// from 0 to 1. Empty texts have nothing in common.
func (b bag) similarity(c bag) float64 {
	if b.total == 0 || c.total == 0 {
		return 0
	}
	common := 0
	for line, n := range b.lines {
		common += min(n, c.lines[line])
	}
	return 2 * float64(common) / float64(b.total+c.total)
}
