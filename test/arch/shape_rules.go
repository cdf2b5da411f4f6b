package arch

import (
	"fmt"
	"maps"
	"slices"
)

// What the shape is held to.
const (
	// maxRootNames is how many names a host's author has to look through.
	maxRootNames = 70
	// handful is how many files may form a knot in any package: one type whose methods
	// stand in a file for each concern is a knot of that size, and easier to read than
	// one long file.
	handful = 8
)

// knots are the packages of which a larger part may form a knot, how many files, and
// why. A number here may shrink and not grow.
var knots = map[string]struct {
	files int
	why   string
}{
	"actors/kernel/jupyter":  {10, "one interpreter, whose start, execution, interruption and end are a file each"},
	".":                      {12, "a host, its sessions, their calls and what an earlier host has left of them"},
	"actors/kernel":          {10, "one actor and its run, whose cells, events and record are a file each"},
	"actors/kernel/runner":   {16, "one interpreter, whose start, execution, control, end and inheritance are a file each"},
	"actors/launcher":        {13, "one handler of runs, with a file for each thing that it decides"},
	"agent":                  {10, "one tool is a value that calls the next: python falls back to bash, notebooks run python"},
	"bench/scenario":         {12, "each scenario is a file, and the table of them names all"},
	"cmd/internal/fleetapi":  {14, "one node: what a request is about, where that is, and what becomes of the node are a file each"},
	"cmd/internal/cli":       {19, "serve: what it is asked for, a fleet, its tenants, and how it is replaced and ends are a file each"},
	"cmd/internal/httpapi":   {13, "one handler, with a file for each resource"},
	"fleet":                  {9, "one member, whose lease, claims, turns, counts and look at the others are a file each"},
	"cmd/internal/mcpserver": {11, "one server, with a file for each of the protocol's subjects"},
}

// CheckShape returns what is worse than it should be.
func CheckShape(s *Shape) []Violation {
	var list []Violation
	broken := func(path, format string, args ...any) {
		list = append(list, Violation{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if s.RootNames > maxRootNames {
		broken(".", "the root exports %d names; it may have %d: what is not about a host, a session, a request or their results belongs to the package of which it is the face", s.RootNames, maxRootNames)
	}
	for _, dir := range slices.Sorted(maps.Keys(s.Knots)) {
		knot, files, allowed := s.Knots[dir], s.Files[dir], max(handful, s.Files[dir]/3)
		if k, ok := knots[dir]; ok {
			allowed = k.files
			if knot < k.files {
				broken(dir, "%d files form a knot now, and knots in shape_rules.go allows %d: lower it", knot, k.files)
			}
		}
		if knot > allowed {
			broken(dir, "%d of %d files reach each other by names; %d may: take the part out that needs least of the rest", knot, files, allowed)
		}
	}
	for dir := range knots {
		if _, ok := s.Knots[dir]; !ok {
			broken(dir, "knots in shape_rules.go names a package that is not there")
		}
	}
	return list
}
