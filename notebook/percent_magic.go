package notebook

import (
	"regexp"
	"slices"
	"strings"
)

// In a script, IPython's magics are no Python; the percent format comments
// them out. A line that would read as such a comment is commented out once
// more, so that reading can take exactly one comment sign away.
var (
	magicLine = regexp.MustCompile(`^\s*(?:# |#)*(?:` +
		`%{1,3}[a-zA-Z]|` + // %matplotlib, %%time
		`[?!]\s*[A-Za-z.~$\\/{}])`) // !ls, ?print
	magicAssign  = regexp.MustCompile(`^(?:# |#)*\s*[a-zA-Z_][a-zA-Z_$0-9]*\s*=\s*(?:%{1,3}|!)[a-zA-Z]`)
	magicHelp    = regexp.MustCompile(`^\s*(?:# )*\S*\?\s*$`)
	magicCommand = regexp.MustCompile(`^(?:# |#)*(?:cat|cd|cp|mv|rm|rmdir|mkdir|copy|ddir|echo|ls|ldir|ren)(?:$|\s$|\s[^=,])`)
	// markerLike is a comment that begins a cell, commented out any number of
	// times.
	markerLike = regexp.MustCompile(`^\s*(?:# )*#\s*(?:%%%*(?:\s|$)|<codecell>\s*$|In\[[0-9 ]*\]:?\s*$)`)
)

func isMagic(line string) bool {
	return magicLine.MatchString(line) || magicAssign.MatchString(line) ||
		magicHelp.MatchString(line) || magicCommand.MatchString(line)
}

// commentMagics returns the lines of a code cell as a script has them.
func commentMagics(lines []string) []string {
	out := slices.Clone(lines)
	eachCode(lines, out, func(line string, continued bool) string {
		if continued {
			return "# " + line
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		return indent + "# " + line[len(indent):]
	}, func(line string) bool { return isMagic(line) || markerLike.MatchString(line) }, out)
	return out
}

// uncommentMagics undoes commentMagics.
func uncommentMagics(lines []string) []string {
	out := slices.Clone(lines)
	eachCode(lines, out, func(line string, _ bool) string {
		body := strings.TrimLeft(line, " \t")
		indent := line[:len(line)-len(body)]
		if rest, ok := strings.CutPrefix(body, "# "); ok {
			return indent + rest
		}
		return indent + strings.TrimPrefix(body, "#")
	}, func(line string) bool {
		if isMagic(line) {
			return true
		}
		inner, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "# ")
		return ok && markerLike.MatchString(inner)
	}, lines)
	return out
}

// eachCode sets out[i] to f of each line that pick chooses, or that a backslash
// at the end of a chosen line continues. Lines that begin inside a string stay.
// What is a string is read off script: the lines as the script has them, in
// which magics are comments and their quotes do not count.
func eachCode(lines, out []string, f func(line string, continued bool) string, pick func(string) bool, script []string) {
	var q quoteTracker
	continued := false
	for i, line := range lines {
		if !q.quoted() && (continued || pick(line)) {
			out[i] = f(line, continued)
			continued = strings.HasSuffix(strings.TrimRight(line, " \t"), `\`)
		} else {
			continued = false
		}
		q.read(script[i])
	}
}

// quoteTracker tells whether a line begins inside a triple-quoted string.
type quoteTracker struct {
	// open is the quotes of the string that is open at the end of what was
	// read, empty outside of strings.
	open string
}

func (q *quoteTracker) quoted() bool { return q.open != "" }

func (q *quoteTracker) read(line string) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
		case q.open != "":
			if strings.HasPrefix(line[i:], q.open) {
				i += len(q.open) - 1
				q.open = ""
			}
		case c == '#':
			return
		case c == '"' || c == '\'':
			quote := line[i : i+1]
			if triple := strings.Repeat(quote, 3); strings.HasPrefix(line[i:], triple) {
				q.open = triple
				i += 2
				continue
			}
			i = endOfString(line, i)
		}
	}
}

// endOfString returns the place of the quote that closes the string that
// begins at start, or the end of the line.
func endOfString(line string, start int) int {
	for i := start + 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case line[start]:
			return i
		}
	}
	return len(line)
}

// cellLanguages are the %% magics whose cell is in another language; a script
// has their whole source commented out and the magic in the marker.
var cellLanguages = map[string]bool{
	"R": true, "bash": true, "sh": true, "javascript": true, "js": true, "perl": true, "html": true,
	"latex": true, "markdown": true, "ruby": true, "script": true, "svg": true, "sql": true,
	"cython": true, "julia": true, "python2": true, "python3": true, "python": true, "pypy": true,
}

// cutCellMagic takes a language magic off the top of a source.
func cutCellMagic(source string) (name, args, rest string, ok bool) {
	line, rest, _ := strings.Cut(source, "\n")
	magic, ok := strings.CutPrefix(line, "%%")
	name, args, _ = strings.Cut(magic, " ")
	return name, args, rest, ok && cellLanguages[name]
}
