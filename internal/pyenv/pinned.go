package pyenv

import (
	"strconv"
	"strings"
)

// Pinned returns the oldest version of a package that Setup installs, "" for one
// that it does not.
func Pinned(dist string) string {
	want := normal(dist)
	oldest := ""
	for line := range strings.Lines(requirements) {
		name, rest, ok := strings.Cut(line, "==")
		if !ok || normal(name) != want {
			continue
		}
		version := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" ;\\\r\n", r) })[0]
		if oldest == "" || Older(version, oldest) {
			oldest = version
		}
	}
	return oldest
}

// normal is the name of a package as indexes compare it.
func normal(dist string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(strings.TrimSpace(dist)))
}

// Older says whether version a comes before b. What follows the numbers (rc1,
// .dev0) does not count.
func Older(a, b string) bool {
	as, bs := numbers(a), numbers(b)
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x = as[i]
		}
		if i < len(bs) {
			y = bs[i]
		}
		if x != y {
			return x < y
		}
	}
	return false
}

// Major is the version up to its first dot.
func Major(version string) string {
	major, _, _ := strings.Cut(version, ".")
	return major
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		digits := strings.TrimRightFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		all = append(all, n)
		if digits != part {
			break
		}
	}
	return all
}

// Missing are the names to install of the packages without which no gateway can be
// started: one package may stand in for another.
func Missing(packages []Package) []string { return missingOf(packages) }
