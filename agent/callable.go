package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice"
)

// launchedPrefix begins the names of the launcher's tools before a model, so
// that none takes the name of another tool. Code in cells says it the same way:
// tool.word_count(...).
const launchedPrefix = "tool_"

// How much of what code can call stands in the description of a tool, in bytes: one
// function, one pack, and each of the two lists. The rest is a call away.
const (
	maxFunctionLine = 300
	maxPackLine     = 800
	maxList         = 6 << 10
)

// callableDocs is the part of a tool's description that says what code can call of
// the host; "" when that is nothing.
func callableDocs(host *coppice.Host) string {
	var b strings.Builder
	o := host.Options().HostCalls
	var lines []string
	for _, f := range o.Functions {
		call := "tool." + f.Name
		if !isName(f.Name) {
			call = fmt.Sprintf("tool[%q]", f.Name)
		}
		if f.Signature == "" {
			call += "(...)"
		}
		lines = append(lines, line(call+f.Signature, f.Description, maxFunctionLine))
	}
	launched := host.Launcher() != nil
	if len(lines) > 0 || launched {
		b.WriteString("\n\nCode calls functions of the host as tool.NAME(key=value). dir(tool) lists them, and help(tool.NAME) describes one.")
		if launched {
			b.WriteString(" The tools " + launchedPrefix + "NAME are there too, as tool.NAME.")
		}
		b.WriteString("\n" + listed(lines, "dir(tool)"))
	}
	lines = nil
	for _, p := range host.Primitives().Packs() {
		names := make([]string, len(p.Primitives))
		for i, one := range p.Primitives {
			names[i] = strings.TrimPrefix(one.Name, p.Name+".")
		}
		about := strings.TrimSpace(p.Guidance)
		if len(names) > 0 {
			about = strings.TrimSpace(about + " Primitives: " + strings.Join(names, ", ") + ".")
		}
		lines = append(lines, line("runtime."+p.Name, about, maxPackLine))
	}
	if len(lines) > 0 {
		b.WriteString("\n\nCode calls primitives of the host as runtime.PACK.NAME(...). runtime.list_primitives() lists them, and runtime.get_primitive_spec(name) describes one: read that before the first call.\n")
		b.WriteString(listed(lines, "runtime.list_primitives()"))
	}
	if b.Len() > 0 {
		b.WriteString("\n\n" + backendsStay)
	}
	return b.String()
}

// backendsStay is what a reset does not touch.
const backendsStay = "A reset clears the variables alone: what the host keeps for its functions and primitives (backends, conversations, forks) stays."

// line is an entry of a list, cut where it is long.
func line(name, about string, most int) string {
	entry := "- " + name
	if about = strings.Join(strings.Fields(about), " "); about != "" {
		entry += ": " + about
	}
	if len(entry) <= most {
		return entry + "\n"
	}
	n := most - len("…")
	for n > 0 && !utf8.RuneStart(entry[n]) {
		n--
	}
	return entry[:n] + "…\n"
}

// listed are the lines that have room, and where to read the others.
func listed(lines []string, more string) string {
	var b strings.Builder
	for i, l := range lines {
		if b.Len()+len(l) > maxList {
			fmt.Fprintf(&b, "- and %d more, see %s\n", len(lines)-i, more)
			break
		}
		b.WriteString(l)
	}
	return strings.TrimRight(b.String(), "\n")
}

// isName says that Python can say a name after a dot.
func isName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') && r < utf8.RuneSelf {
			return false
		}
	}
	return true
}
