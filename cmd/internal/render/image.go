package render

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/iterm2"
	"github.com/charmbracelet/x/ansi/kitty"

	"github.com/coppice-run/coppice/messages"
)

// Protocol is how a terminal shows images in its text.
type Protocol string

// The protocols. A terminal without one gets a line that describes the image.
const (
	NoImages Protocol = ""
	// Kitty is the graphics protocol of kitty and Ghostty. It takes PNG; other
	// images are made PNG.
	Kitty Protocol = "kitty"
	// ITerm is the inline images of iTerm2 and WezTerm.
	ITerm Protocol = "iterm2"
	// Sixel is the graphics of foot, mlterm, contour and others.
	Sixel Protocol = "sixel"
	// Blocks draws with half blocks in colours, which every terminal of 24-bit
	// colour shows, also inside of tmux. It needs Style.Colour.
	Blocks Protocol = "blocks"
)

// ProtocolOf says which protocol a terminal has: the one that COPPICE_IMAGES
// names (kitty, iterm2, sixel, blocks; none), else by what its environment
// tells. Inside of tmux and screen there is none: they do not pass images on.
func ProtocolOf(getenv func(string) string) Protocol {
	term, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch named := Protocol(getenv("COPPICE_IMAGES")); named {
	case Kitty, ITerm, Sixel, Blocks:
		return named
	case "none":
		return NoImages
	default:
	}
	switch {
	case getenv("TMUX") != "", strings.HasPrefix(term, "screen"), strings.HasPrefix(term, "tmux"):
		return NoImages
	case term == "xterm-kitty", term == "xterm-ghostty", getenv("KITTY_WINDOW_ID") != "", program == "ghostty":
		return Kitty
	case program == "iTerm.app", program == "WezTerm", getenv("LC_TERMINAL") == "iTerm2":
		return ITerm
	case term == "foot", strings.HasPrefix(term, "foot-"), strings.HasPrefix(term, "mlterm"), term == "contour", term == "yaft-256color":
		return Sixel
	default:
		return NoImages
	}
}

// maxInline is the largest image, in base64, that is sent to a terminal.
const maxInline = 8 << 20

// inline returns the lines that show an image in base64 on a terminal of the
// style, none when it cannot.
func (s Style) inline(mime, data string) []string {
	data = strings.Join(strings.Fields(data), "")
	if data == "" || len(data) > maxInline || strings.ContainsFunc(data, notBase64) {
		return nil
	}
	shown := ""
	switch {
	case s.Images == Blocks && s.Colour:
		return blocks(data, s.Width)
	case !s.Terminal:
	case s.Images == Kitty && mime == messages.MIMEPNG:
		shown = kittyImage(data)
	case s.Images == Kitty:
		if data = pngOf(data); data != "" {
			shown = kittyImage(data)
		}
	case s.Images == ITerm:
		shown = ansi.ITerm2(iterm2.File{Inline: true, Size: int64(len(data) * 3 / 4), Content: []byte(data)})
	case s.Images == Sixel:
		shown = sixelImage(data)
	}
	if shown == "" {
		return nil
	}
	return []string{shown}
}

// kittyImage shows a PNG, which is sent on as it is.
func kittyImage(data string) string {
	var b strings.Builder
	head := []string{"a=T", "f=100", "q=2"}
	for data != "" {
		n, more := min(len(data), kitty.MaxChunkSize), "m=0"
		if n < len(data) {
			more = "m=1"
		}
		b.WriteString(ansi.KittyGraphics([]byte(data[:n]), append(head, more)...))
		head, data = nil, data[n:]
	}
	return b.String()
}

func notBase64(r rune) bool {
	return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '/' && r != '='
}
