package render

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Name is a name that somebody else has given as it is shown in a line: quoted where a character of
// it is none that is printed, since that could end the line, or turn the order of what follows.
func Name(name string) string {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
