// Package version says which version of Coppice a program is. It is the one place that
// does: --version, "coppice version --json", coppice_build_info, the answer of
// /api/health and what an MCP client is greeted with all come from [Read].
//
// A version is one of Semantic Versioning 2.0, without a letter before it. It comes from
// the first of these that says something:
//
//   - the linker, where whoever builds a release names it: -ldflags "-X
//     github.com/coppice-run/coppice/cmd/internal/version.linked=0.1.0"
//   - the module system: "go install …/cmd/coppice@v0.1.0", and "go build" in a clone
//     whose commit has a tag
//   - [Next], as a version before it: 0.1.0-dev.20261122125926.gdc2957d2ab34 in a clone,
//     0.1.0-dev where nothing is known of the source
package version

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Next is the version that this tree becomes when it is released, and the one that the
// adapters and the clients in it have.
const Next = "0.1.0"

// linked is set by the linker.
var linked = ""

// Info is what a program knows of its build. What is not known is "".
type Info struct {
	// Version is the semantic version, such as 0.1.0.
	Version string `json:"version"`
	// Commit names the commit, Date its time in RFC 3339. Modified says that there were
	// changes beside it.
	Commit   string `json:"commit"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Go is the version of the Go toolchain; OS and Arch are what the program is for, as
	// Go names it.
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// String returns the version, with what the program was built by and for.
func (i Info) String() string {
	return i.Version + " (" + i.Go + ", " + i.OS + "/" + i.Arch + ")"
}

// Read returns what this program knows of its build. It may be called from anywhere.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return of(linked, build)
}

// of reads what the linker and the module system say.
func of(linked string, build *debug.BuildInfo) Info {
	i := Info{Version: linked, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if i.Version == "" {
		i.Version = semantic(build.Main.Version)
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.time":
			i.Date = s.Value
		case "vcs.modified":
			i.Modified = s.Value == "true"
		}
	}
	return i
}

// untagged is a version that the go command makes of a commit when no tag is below it.
var untagged = regexp.MustCompile(`^v0\.0\.0-(\d{14})-([0-9a-f]{12})((?:\+.*)?)$`)

// semantic makes a semantic version of that of a module.
func semantic(module string) string {
	if m := untagged.FindStringSubmatch(module); m != nil {
		// With the letter a hash is never taken for a number, which may not begin with 0.
		return Next + "-dev." + m[1] + ".g" + m[2] + m[3]
	}
	if v, ok := strings.CutPrefix(module, "v"); ok {
		return v
	}
	return Next + "-dev"
}
