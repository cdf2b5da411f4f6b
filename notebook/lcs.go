package notebook

import "slices"

// maxEdits bounds the search for a longest common subsequence. Two sequences
// that are further apart are aligned at what begins and ends both alone.
const maxEdits = 1500

// pair says that element A of one sequence is matched with element B of another.
type pair struct{ a, b int }

// lcs returns a longest common subsequence of two sequences, as matched
// places in ascending order, by Myers' algorithm ("An O(ND) difference
// algorithm and its variations", 1986).
func lcs[T comparable](a, b []T) []pair {
	var head, tail []pair
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		head = append(head, pair{start, start})
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA--
		endB--
		tail = append(tail, pair{endA, endB})
	}
	slices.Reverse(tail)
	for _, p := range myers(a[start:endA], b[start:endB]) {
		head = append(head, pair{p.a + start, p.b + start})
	}
	return append(head, tail...)
}

func myers[T comparable](a, b []T) []pair {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return nil
	}
	limit := min(n+m, maxEdits)
	// far[k+limit+1] is the furthest place in a on diagonal k, where a's place
	// less b's is k; trace keeps it as it was before each step.
	far := make([]int32, 2*limit+3)
	var trace [][]int32
	for d := 0; d <= limit; d++ {
		trace = append(trace, slices.Clone(far[limit+1-d:limit+2+d]))
		for k := -d; k <= d; k += 2 {
			i := limit + 1 + k
			x := int(far[i-1]) + 1
			if k == -d || k != d && far[i-1] < far[i+1] {
				x = int(far[i+1])
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x++
				y++
			}
			far[i] = int32(x)
			if x >= n && y >= m {
				return backtrack(trace, n, m)
			}
		}
	}
	return nil
}

// backtrack follows the trace of myers from the end to the beginning.
func backtrack(trace [][]int32, x, y int) []pair {
	var out []pair
	for d := len(trace) - 1; d > 0; d-- {
		// trace[d] holds diagonals -d to d, as they were after step d-1.
		at := func(k int) int { return int(trace[d][k+d]) }
		k := x - y
		prev := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			prev = k + 1
		}
		px := at(prev)
		py := px - prev
		for x > px && y > py {
			x--
			y--
			out = append(out, pair{x, y})
		}
		x, y = px, py
	}
	for x > 0 && y > 0 {
		x--
		y--
		out = append(out, pair{x, y})
	}
	slices.Reverse(out)
	return out
}

// increasing returns the places of a longest increasing subsequence.
func increasing(seq []int) map[int]bool {
	prev := make([]int, len(seq))
	var tails []int // tails[n] ends the best subsequence of length n+1
	for i, v := range seq {
		n, _ := slices.BinarySearchFunc(tails, v, func(j, v int) int { return seq[j] - v })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	in := make(map[int]bool, len(tails))
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = prev[i] {
			in[i] = true
		}
	}
	return in
}
