package sanitise

import (
	"regexp"
	"strings"
)

// pictures are the sequences that draw a picture and do nothing else, by how they
// begin. The picture itself is in them: none names a file, a link or a picture that
// was sent before, and none makes the terminal answer.
var pictures = []struct {
	head  string
	whole *regexp.Regexp
}{
	{"\x1b_G", regexp.MustCompile(`\A\x1b_G(?:(?:a=T|f=100|q=2|m=[01])(?:,(?:a=T|f=100|q=2|m=[01]))*)?;[A-Za-z0-9+/=]*\x1b\\`)},            // kitty
	{"\x1b]1337;File=", regexp.MustCompile(`\A\x1b\]1337;File=(?:size=[0-9]+;)?inline=1(?:;size=[0-9]+)?:[A-Za-z0-9+/=]*(?:\x07|\x1b\\)`)}, // iTerm2
	{"\x1bP", regexp.MustCompile(`\A\x1bP[0-9;]*q[#!"$\-0-9;?-~]*\x1b\\`)},                                                                 // sixel
}

// Picture reports whether text begins with a sequence that draws a picture and does
// nothing else, in one of the forms of package render, and how long that is.
func Picture(text string) (size int, is bool) {
	for _, p := range pictures {
		if strings.HasPrefix(text, p.head) {
			if found := p.whole.FindStringIndex(text); found != nil {
				return found[1], true
			}
		}
	}
	return 0, false
}

// nextPicture is where the first picture of text begins and how long it is: the end of
// text and 0 when it has none.
func nextPicture(text string) (at, size int) {
	for from := 0; ; {
		next := strings.IndexByte(text[from:], esc)
		if next < 0 {
			return len(text), 0
		}
		from += next
		if size, is := Picture(text[from:]); is {
			return from, size
		}
		from++
	}
}
