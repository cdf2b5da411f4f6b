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
	next := 0
	for n, i := range inA {
		best, bestScore := -1, 0.5
		for j := next; j < min(len(inB), next+window); j++ {
			if !maySucceed(a[i], b[inB[j]]) {
				continue
			}
			if score := similarity(a[i].source, b[inB[j]].source); score > bestScore || score == bestScore && best < 0 {
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

// similarity is the share of lines that two texts have in common, from 0 to 1.
// Empty texts have nothing in common.
func similarity(a, b string) float64 {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	if a == "" || b == "" || len(x) > 4*len(y) || len(y) > 4*len(x) {
		return 0
	}
	if len(x) > 2000 || len(y) > 2000 {
		return 0
	}
	return 2 * float64(len(lcs(x, y))) / float64(len(x)+len(y))
}
