package arch

import (
	"strings"
)

// layer is a row of the import table: what the packages that match may import.
type layer struct {
	// dir is a folder, or a pattern: "sinks/..." is sinks and all below it. The
	// first row that matches counts.
	dir string
	// ours lists the packages of this module, as patterns.
	ours []string
	// theirs lists packages of other modules, as patterns.
	theirs []string
	// not lists packages of the standard library that must stay out, as
	// patterns.
	not []string
}

// What several rows share.
var (
	hollywood = "github.com/anthdm/hollywood/actor"
	// mechanisms are what an actor leaves to a package under internal.
	mechanisms = []string{"encoding/json", "net/...", "syscall", "os/exec"}
	// public is what a program that embeds Coppice may see.
	public = []string{".", "agent", "agent/primitive", "agent/selfref", "actors/kernel", "actors/launcher", "environment", "hibernate", "store", "internal/home", "internal/file/...", "messages", "sinks/...", "notebook/...", "client", "workspace/..."}
	// terminal is what draws on a terminal.
	terminal = "github.com/charmbracelet/x/ansi"
)

// layers is the import table, from the ground floor up. A package without a
// row fails the build.
var layers = []layer{
	// Ground floor: values.
	{dir: "messages"},
	{dir: "internal/deadline"},
	{dir: "internal/file", ours: []string{"internal/deadline"}, theirs: []string{"golang.org/x/sys/unix"}}, // extended attributes, which syscall has on Linux alone
	{dir: "internal/file/temp", ours: []string{"internal/process"}},
	{dir: "internal/file/own", ours: []string{"internal/file", "internal/file/temp"}, theirs: []string{"github.com/gofrs/flock"}},
	{dir: "internal/file/...", ours: []string{"internal/file"}},
	{dir: "internal/bytescan"},
	{dir: "internal/secret"},
	{dir: "internal/home"},
	{dir: "internal/highlight", theirs: []string{"github.com/alecthomas/chroma/v2"}}, // not its lexers and styles: every start would read them all
	{dir: "internal/loopback"},
	{dir: "internal/pause"},
	{dir: "internal/rights", theirs: []string{"golang.org/x/sys/unix"}},
	{dir: "notebook/page", ours: []string{"notebook", "sinks/sanitise", "internal/file", "internal/highlight"}, theirs: []string{"github.com/alecthomas/chroma/v2", "github.com/alecthomas/chroma/v2/formatters/html", "github.com/yuin/goldmark/...", terminal}},
	{dir: "internal/pylit"},
	{dir: "internal/shell"},
	{dir: "internal/recording", ours: []string{"messages", "notebook"}, not: []string{"net/...", "syscall", "os/exec", "os"}},
	{dir: "notebook/run", ours: []string{"messages", "notebook", "internal/recording"}, not: []string{"net/...", "syscall", "os/exec", "os"}},
	{dir: "notebook/...", ours: []string{"internal/bytescan", "internal/pylit", "internal/file"}, theirs: []string{"github.com/gofrs/flock"}},

	// First floor: supervision.
	{dir: "supervisor/strategy", ours: []string{"messages"}, theirs: []string{"github.com/cenkalti/backoff/v4"}, not: append([]string{"os", "io", "log/...", "context", "sync/...", "runtime/..."}, mechanisms...)},
	{dir: "supervisor", ours: []string{"messages", "supervisor/strategy", "internal/opportunity"}, theirs: []string{hollywood}, not: append([]string{"os"}, mechanisms...)},

	// Second floor: output, actors, and the mechanisms that actors use.
	{dir: "sinks/ipynb", ours: []string{"messages", "supervisor", "sinks", "sinks/sinktest", "notebook", "internal/recording"}, theirs: []string{hollywood, "github.com/gofrs/flock"}},
	{dir: "sinks/prom", ours: []string{"messages", "sinks", "sinks/sinktest"}, theirs: []string{"github.com/prometheus/client_golang/prometheus/..."}},
	{dir: "sinks/spans", ours: []string{"messages", "sinks", "sinks/sinktest"}, theirs: []string{"go.opentelemetry.io/otel/..."}},
	{dir: "sinks/audit", ours: []string{"messages", "sinks", "sinks/sinktest", "internal/file/lines", "internal/secret"}},
	{dir: "sinks/sinktest", ours: []string{"messages", "supervisor", "sinks"}, theirs: testOnly},
	{dir: "internal/egress", ours: []string{"internal/inbound"}, theirs: []string{"golang.org/x/net/idna"}},
	{dir: "sinks/htmltext", ours: []string{"sinks/sanitise"}, theirs: []string{"golang.org/x/net/html"}},
	{dir: "sinks/budget", theirs: []string{"github.com/clipperhouse/uax29/v2/graphemes"}},
	{dir: "sinks/...", ours: []string{"messages", "supervisor", "supervisor/strategy", "sinks/...", "internal/bytescan", "internal/file/...", "internal/opportunity", "internal/secret", "internal/scale"}, theirs: []string{hollywood}},
	{dir: "agent/primitive", ours: []string{"messages"}, theirs: []string{"github.com/google/jsonschema-go/jsonschema"}, not: []string{"net/...", "syscall", "os/exec", "os"}},
	{dir: "agent/selfref", ours: []string{"messages", "supervisor", "agent/primitive"}, not: []string{"net/...", "syscall", "os/exec", "os"}},
	{dir: "internal/hostcall", ours: []string{"messages", "supervisor", "agent/primitive"}, not: []string{"net/...", "syscall", "os/exec", "os"}},
	{dir: "internal/jupyter", ours: []string{"messages", "internal/..."}, theirs: []string{"github.com/gorilla/websocket"}},
	{dir: "internal/toolspec", ours: []string{"internal/file", "internal/secret"}, theirs: []string{"github.com/joho/godotenv"}},
	{dir: "internal/toolenv", ours: []string{"internal/..."}, theirs: []string{"github.com/BurntSushi/toml", "github.com/gofrs/flock"}},
	{dir: "internal/sandbox", ours: []string{"internal/file", "internal/file/temp"}, theirs: []string{"golang.org/x/sys/...", "golang.org/x/net/bpf", "github.com/elastic/go-seccomp-bpf", "github.com/elastic/go-seccomp-bpf/arch"}},
	{dir: "internal/...", ours: []string{"messages", "internal/..."}, theirs: []string{"github.com/gofrs/flock", "golang.org/x/sys/..."}},
	{dir: "actors/kernel/walls", ours: []string{"actors/kernel", "internal/egress", "internal/process", "internal/sandbox", "internal/users", "internal/file/temp"}},
	{dir: "actors/kernel/*", ours: []string{"messages", "supervisor", "actors/kernel", "actors/kernel/walls", "internal/..."}, theirs: []string{hollywood}},
	{dir: "actors/kernel", ours: []string{"messages", "supervisor", "supervisor/strategy", "internal/..."}, theirs: []string{hollywood}, not: mechanisms},
	{dir: "actors/kernelspec", ours: []string{"supervisor", "actors/kernel"}, not: mechanisms},
	{dir: "actors/gateway", ours: []string{"messages", "supervisor", "supervisor/strategy", "internal/..."}, theirs: []string{hollywood}, not: mechanisms},
	{dir: "actors/launcher", ours: []string{"messages", "supervisor", "supervisor/strategy", "internal/..."}, theirs: []string{hollywood}, not: mechanisms},

	// Workspaces: folders of files, processes, and what belongs together.
	{dir: "workspace/files", ours: []string{"internal/file"}, theirs: []string{"github.com/fsnotify/fsnotify"}},
	{dir: "workspace/procs", ours: []string{"internal/deadline", "internal/eventlog", "internal/process"}, theirs: []string{"github.com/creack/pty"}},
	{dir: "workspace", ours: []string{"messages", "supervisor", "supervisor/strategy", "actors/kernel", "internal/...", "workspace/files", "workspace/procs"}, theirs: []string{hollywood}},

	// What sessions had in memory, on disk.
	{dir: "store", ours: []string{"internal/file", "store/storetest"}, theirs: []string{"github.com/gofrs/flock"}}, // storetest is for its tests
	{dir: "store/storetest", ours: []string{"store"}, theirs: testOnly},
	{dir: "hibernate", ours: []string{"messages", "actors/kernel", "store"}, not: []string{"net/...", "syscall", "os/exec"}},

	// Python on this machine, without a host.
	{dir: "environment", ours: []string{"internal/..."}, theirs: []string{"golang.org/x/sys/..."}},

	// Third floor: what a host imports; the only place that sees all of the above.
	{dir: ".", ours: []string{"agent/primitive", "agent/selfref", "environment", "hibernate", "store", "internal/...", "messages", "notebook/...", "supervisor", "sinks/...", "actors/...", "workspace/..."}},

	// What stands on a host: the tools for models. The packages below it are modules
	// of their own.
	{dir: "agent", ours: []string{".", "actors/launcher", "agent/primitive", "messages", "notebook/...", "sinks/...", "internal/home", "internal/hostcall"}},

	// The client of coppice serve: for programs that run Python elsewhere.
	{dir: "client", ours: []string{"messages", "internal/home", "internal/file", "internal/opportunity", "internal/process", "internal/sse"}},

	// Which node has which session: for programs that serve sessions on many machines. No
	// client of a directory is linked: those are modules of their own.
	{dir: "fleet", ours: []string{"fleet/fleettest", "internal/pause"}, theirs: []string{"golang.org/x/sys/unix"}}, // fleettest is for its tests
	{dir: "fleet/fleettest", ours: []string{"fleet"}, theirs: testOnly},

	// Fourth floor: programs and tests that use it.
	{dir: "cmd/coppice", ours: []string{"cmd/internal/cli", "client", "messages"}}, // the client is for its tests,
	{dir: "cmd/internal/render", ours: []string{"messages", "sinks/sanitise", "sinks/htmltext", "internal/highlight", "internal/scale"}, theirs: []string{terminal, terminal + "/...", "github.com/alecthomas/chroma/v2"}},
	{dir: "cmd/internal/repl", ours: append([]string{"cmd/internal/render"}, public...), theirs: []string{terminal, "charm.land/bubbletea/v2"}},
	{dir: "cmd/internal/httpserver", ours: []string{"client", "internal/file", "internal/inbound", "internal/loopback", "internal/opportunity", "internal/process"}},
	{dir: "cmd/internal/handover", ours: []string{"internal/deadline", "internal/estate", "internal/opportunity", "internal/process", "internal/rights"}, theirs: []string{"golang.org/x/sys/unix"}},
	{dir: "cmd/internal/access", ours: []string{"cmd/internal/httpserver", "internal/file", "internal/file/lines"}, theirs: []string{"github.com/gofrs/flock"}},
	{dir: "cmd/internal/mcpserver", ours: append([]string{"cmd/internal/dialect", "cmd/internal/httpserver", "internal/opportunity"}, public...), theirs: []string{"github.com/modelcontextprotocol/go-sdk/mcp", "github.com/modelcontextprotocol/go-sdk/jsonrpc"}},
	{dir: "cmd/internal/dialect", ours: []string{"cmd/internal/httpserver", "messages"}},
	{dir: "cmd/internal/fleetapi/together", ours: []string{"client", "cmd/internal/liveview/vitals", "messages"}},
	{dir: "cmd/internal/fleetapi/relay", ours: []string{"internal/inbound"}},
	{dir: "cmd/internal/fleetapi/about", ours: []string{"messages", "cmd/internal/fleetapi/relay", "cmd/internal/httpserver"}},
	{dir: "cmd/internal/fleetapi/front", ours: []string{"fleet", "internal/pause", "messages", "workspace", "cmd/internal/fleetapi/...", "cmd/internal/httpserver"}, theirs: []string{"github.com/prometheus/client_golang/prometheus"}},
	{dir: "cmd/internal/fleetapi", ours: []string{"client", "fleet", "fleet/fleettest", "internal/inbound", "internal/pause", "messages", "store", "cmd/internal/dialect", "cmd/internal/fleetapi/about", "cmd/internal/fleetapi/relay", "cmd/internal/fleetapi/together", "cmd/internal/httpapi", "cmd/internal/httpserver"}, theirs: []string{"github.com/prometheus/client_golang/prometheus"}}, // fleettest is for its tests
	{dir: "cmd/internal/httpapi", ours: append([]string{"cmd/internal/...", "internal/eventlog", "internal/opportunity", "internal/recording", "internal/sse"}, public...), theirs: []string{"go.opentelemetry.io/otel/trace", "github.com/gorilla/websocket", "github.com/prometheus/client_golang/prometheus/..."}},
	{dir: "cmd/internal/e2b/wire/...", theirs: []string{"connectrpc.com/connect", "google.golang.org/protobuf/..."}},
	{dir: "cmd/internal/e2b/...", ours: append([]string{"cmd/internal/e2b/...", "cmd/internal/dialect", "cmd/internal/httpserver"}, public...), theirs: []string{"connectrpc.com/connect", "google.golang.org/protobuf/...", "github.com/google/uuid"}},
	{dir: "cmd/internal/jupyterapi/contents", ours: []string{"internal/file", "notebook", "workspace/files"}},
	{dir: "cmd/internal/jupyterapi", ours: append([]string{"cmd/internal/dialect", "cmd/internal/httpserver", "cmd/internal/jupyterapi/contents"}, public...), theirs: []string{"github.com/gorilla/websocket"}},
	{dir: "cmd/internal/telemetry", ours: []string{"messages", "sinks", "sinks/spans"}, theirs: []string{"go.opentelemetry.io/...", "google.golang.org/protobuf/proto"}},
	{dir: "cmd/internal/liveview", ours: []string{"client", "messages", "cmd/internal/httpserver", "cmd/internal/liveview/vitals"}},
	{dir: "cmd/internal/liveview/vitals", ours: []string{"client", "messages", "sinks", "internal/machine"}},
	{dir: "cmd/internal/top", ours: []string{"client", "messages", "sinks/sanitise", "cmd/internal/render"}, theirs: []string{terminal, "charm.land/bubbletea/v2"}},
	{dir: "cmd/internal/term", theirs: []string{"github.com/charmbracelet/x/term", "golang.org/x/sys/..."}},
	{dir: "cmd/internal/cli/console", ours: append([]string{"cmd/internal/render", "cmd/internal/telemetry", "cmd/internal/term"}, public...), theirs: []string{"github.com/spf13/cobra"}},
	{dir: "cmd/internal/cli/notebook", ours: append([]string{"cmd/internal/cli/console", "cmd/internal/render", "cmd/internal/term", "internal/shell"}, public...), theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}},
	{dir: "cmd/internal/cli/tool", ours: append([]string{"cmd/internal/cli/console", "cmd/internal/render", "cmd/internal/toolapi"}, public...), theirs: []string{"github.com/spf13/cobra"}},
	{dir: "cmd/internal/cli", ours: append([]string{"cmd/internal/...", "fleet", "internal/file", "internal/inbound", "internal/loopback", "internal/opportunity", "internal/shell", "actors/kernel/jupyter", "bench/record", "bench/scenario"}, public...), theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/cli/browser", terminal, "github.com/prometheus/client_golang/prometheus/..."}},
	{dir: "cmd/internal/workspaceapi", ours: append([]string{"cmd/internal/httpserver", "internal/inbound", "internal/sse"}, public...)},
	{dir: "cmd/internal/cli/workspace", ours: append([]string{"cmd/internal/cli/console", "cmd/internal/render", "cmd/internal/term"}, public...), theirs: []string{"github.com/spf13/cobra"}},
	{dir: "cmd/internal/toolapi", ours: append([]string{"cmd/internal/...", "internal/sse"}, public...)},
	{dir: "cmd/internal/...", ours: append([]string{"cmd/internal/..."}, public...), theirs: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", terminal}},
	{dir: "bench/load", theirs: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	{dir: "bench/record", ours: []string{"bench/load", "internal/file"}},
	{dir: "bench/report", ours: []string{"bench/load", "bench/record"}, theirs: []string{"golang.org/x/perf/benchmath"}},
	{dir: "bench/fake", ours: []string{"messages", "supervisor", "actors/gateway", "actors/kernel"}},
	{dir: "bench/peers", ours: []string{"bench/load", "bench/record"}, theirs: []string{"github.com/gorilla/websocket"}},
	{dir: "bench/...", ours: append([]string{"bench/...", "test/...", "internal/machine"}, public...)},
	{dir: "examples/...", ours: public},
	{dir: "test/arch"},
	{dir: "test/fetch", theirs: append([]string{"golang.org/x/mod/..."}, testOnly...)},
	{dir: "test/fakegateway", ours: []string{"messages"}, theirs: []string{"github.com/gorilla/websocket"}},
	{dir: "test/mcp", ours: []string{"test/..."}, theirs: append([]string{"github.com/modelcontextprotocol/go-sdk/mcp"}, testOnly...)},
	{dir: "test/terminal", theirs: []string{terminal, "golang.org/x/sys/unix"}},
	{dir: "test/starve", ours: []string{"test/...", "messages", "internal/opportunity"}, theirs: append([]string{"golang.org/x/sys/unix"}, testOnly...)},
	{dir: "test/...", ours: append([]string{"test/...", "internal/secret", "internal/opportunity", "supervisor", "actors/gateway", "actors/kernel/..."}, public...), theirs: testOnly},
}

// testOnly may be imported by every _test.go file, besides what the package
// itself may import; test helpers of this module too.
var testOnly = []string{
	"github.com/gofrs/flock", // to hold a lock as another program would
	"github.com/stretchr/testify/require",
	"github.com/alecthomas/chroma/v2/formatters/html",
	"github.com/alecthomas/chroma/v2/lexers", // what internal/highlight is made of
	"github.com/alecthomas/chroma/v2/styles",
	"github.com/google/go-cmp/cmp/...",
	"github.com/google/jsonschema-go/jsonschema",
	"github.com/rogpeppe/go-internal/testscript",
	"go.uber.org/goleak",
	"pgregory.net/rapid",
}

func checkImports(t *Tree) []Violation {
	out := found{tree: t}
	for _, f := range t.Go() {
		row, ok := layerOf(f.Dir())
		if !ok {
			out.at(f, f.AST.Package, "package %s has no row in the import table (test/arch/layers.go)", f.Dir())
			continue
		}
		for imp, pos := range f.Imports() {
			if why := row.refuses(f, imp); why != "" {
				out.at(f, pos, "%s", why)
			}
		}
	}
	return out.sorted()
}

func layerOf(dir string) (layer, bool) {
	for _, l := range layers {
		if matches(l.dir, dir) {
			return l, true
		}
	}
	return layer{}, false
}

// refuses says why file f may not import imp, or "".
func (l layer) refuses(f *File, imp string) string {
	dir, ours := strings.CutPrefix(imp+"/", Module+"/")
	switch {
	case ours:
		dir = strings.TrimSuffix(dir, "/")
		if dir == "" {
			dir = "."
		}
		if dir == f.Dir() || matchesAny(l.ours, dir) || (f.IsTest() && matches("test/...", dir)) {
			return ""
		}
		return "package " + f.Dir() + " may not import " + dir
	case isStandard(imp):
		if !f.IsTest() && matchesAny(l.not, imp) {
			return imp + " stays out of " + f.Dir() + ": put the mechanism in a package under internal"
		}
		return ""
	default:
		if matchesAny(l.theirs, imp) || (f.IsTest() && matchesAny(testOnly, imp)) {
			return ""
		}
		return "package " + f.Dir() + " may not import " + imp + " of another module"
	}
}

// isStandard reports whether imp is in the standard library: the first element
// of its path has no dot.
func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
