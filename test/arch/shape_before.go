package arch

// before is the shape of the tree at 812959c, as [Measure] counted it there.
var before = map[string]string{
	"root: files":                          "42",
	"root: lines":                          "7103",
	"root: exported names":                 "124",
	"largest knot: root":                   "39 of 42",
	"largest knot: supervisor":             "33 of 44",
	"largest knot: cmd/internal/cli":       "36 of 45",
	"functions of more than 20 branches":   "18",
	"third-party packages of a small host": "49",
	"tests to source: .":                   "0.18",
	"tests to source: actors":              "0.51",
	"tests to source: bench":               "0.30",
	"tests to source: client":              "0.12",
	"tests to source: cmd":                 "0.35",
	"tests to source: examples":            "0.40",
	"tests to source: messages":            "0.19",
	"tests to source: notebook":            "0.54",
	"tests to source: sinks":               "0.53",
	"tests to source: supervisor":          "0.96",
	"tests to source: test":                "2.34",
}
