package render

import (
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// Protocol is how a terminal shows images in its text.
type Protocol string

// The protocols. A terminal without one gets a line that describes the image.
const (
	NoImages Protocol = ""
	// Kitty is the graphics protocol of kitty, Ghostty and WezTerm; PNG only.
	Kitty Protocol = "kitty"
	// ITerm is the inline images of iTerm2 and WezTerm.
	ITerm Protocol = "iterm2"
)

// ProtocolOf says which protocol a terminal has, by what its environment tells.
// Inside of tmux and screen there is none: they do not pass images on.
func ProtocolOf(getenv func(string) string) Protocol {
	term, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case getenv("TMUX") != "", strings.HasPrefix(term, "screen"), strings.HasPrefix(term, "tmux"):
		return NoImages
	case term == "xterm-kitty", term == "xterm-ghostty", getenv("KITTY_WINDOW_ID") != "", program == "ghostty":
		return Kitty
	case program == "iTerm.app", program == "WezTerm", getenv("LC_TERMINAL") == "iTerm2":
		return ITerm
	default:
		return NoImages
	}
}

// maxInline is the largest image, in base64, that is sent to a terminal.
const maxInline = 8 << 20

// inline returns what shows an image in base64 on a terminal of the style, ""
// when it cannot.
func (s Style) inline(mime, data string) string {
	data = strings.Join(strings.Fields(data), "")
	if !s.Terminal || data == "" || len(data) > maxInline || strings.ContainsFunc(data, notBase64) {
		return ""
	}
	switch {
	case s.Images == Kitty && mime == messages.MIMEPNG:
		const chunk = 4096 // what the protocol allows in one sequence
		var b strings.Builder
		head := "a=T,f=100,q=2,"
		for data != "" {
			n, more := min(len(data), chunk), 0
			if n < len(data) {
				more = 1
			}
			b.WriteString("\x1b_G" + head + "m=" + strconv.Itoa(more) + ";" + data[:n] + "\x1b\\")
			head, data = "", data[n:]
		}
		return b.String()
	case s.Images == ITerm:
		return "\x1b]1337;File=inline=1;size=" + strconv.Itoa(len(data)*3/4) + ":" + data + "\a"
	default:
		return ""
	}
}

func notBase64(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '/' && r != '='
}
