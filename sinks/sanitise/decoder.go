package sanitise

import (
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/bytescan"
)

// MaxHeld is how many bytes of an unfinished control string are kept to be
// given back as text if it turns out to be none.
const MaxHeld = 4 << 10

const (
	// maxString is where a control string that does not end is given up. It
	// allows for inline images.
	maxString = 4 << 20
	// maxCSI bounds a control sequence; no terminal function needs more.
	maxCSI = 256
	// maxIntermediate bounds the intermediate bytes of a two-byte escape.
	maxIntermediate = 4
)

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// replacement stands for a byte that is not part of a character.
const replacement = "\uFFFD"

// target takes what a decoder finds in a stream.
type target interface {
	// text is a run of printable characters and tabs.
	text(string)
	newline()
	carriageReturn()
	backspace()
	// control is a whole control sequence: parameter and intermediate bytes,
	// and the final byte. The slice is only valid during the call.
	control(params []byte, final byte)
}

type state uint8

const (
	ground state = iota
	escape
	intermediate
	csi
	stringOSC   // ends at BEL too, and does not span lines
	stringOther // DCS, SOS, PM, APC
	stringEscape
)

// decoder finds characters and control sequences in one byte stream. The zero
// value is at the start of a stream.
type decoder struct {
	state state
	// n counts the bytes of the sequence in hand.
	n int
	// part holds the first bytes of a character that a chunk ended in.
	part  [utf8.UTFMax]byte
	nPart int
	// held is the text of the control sequence in hand.
	held []byte
}

// write decodes the next chunk of the stream.
func (d *decoder) write(to target, s string) {
	for d.nPart > 0 && len(s) > 0 {
		d.part[d.nPart] = s[0]
		d.nPart++
		s = s[1:]
		if utf8.FullRune(d.part[:d.nPart]) {
			whole := string(d.part[:d.nPart])
			d.nPart = 0
			d.run(to, whole)
		}
	}
	d.run(to, s)
}

// flush ends the stream.
func (d *decoder) flush(to target) {
	if d.state == stringOSC || d.state == stringOther || d.state == stringEscape {
		d.release(to)
	}
	d.reset()
	for range d.nPart {
		to.text(replacement)
	}
	d.nPart = 0
}

func (d *decoder) run(to target, s string) {
	for len(s) > 0 {
		switch d.state {
		case ground:
			s = d.ground(to, s)
		case stringOSC, stringOther:
			s = d.controlString(to, s)
		default:
			s = d.sequence(to, s)
		}
	}
}

// keep remembers the start of a character that the chunk ends in.
func (d *decoder) keep(s string) { d.nPart = copy(d.part[:], s) }

// ground reads printable characters up to the next escape.
func (d *decoder) ground(to target, s string) string {
	i := 0
	for i < len(s) {
		if i += bytescan.Printable(s[i:]); i == len(s) {
			break
		}
		c := s[i]
		if c == '\t' {
			i++
			continue
		}
		size := 1
		invalid := false
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			invalid = r == utf8.RuneError && size == 1
			if invalid && !utf8.FullRuneInString(s[i:]) {
				if i > 0 {
					to.text(s[:i])
				}
				d.keep(s[i:])
				return ""
			}
			if !invalid && r > 0x9f {
				i += size
				continue
			}
		}
		if i > 0 {
			to.text(s[:i])
		}
		s, i = s[i+size:], 0
		switch {
		case invalid:
			to.text(replacement)
		case c == '\n':
			to.newline()
		case c == '\r':
			to.carriageReturn()
		case c == '\b':
			to.backspace()
		case c == esc:
			d.enter(escape)
			return s
		}
	}
	if i > 0 {
		to.text(s[:i])
	}
	return ""
}

// enter starts a state of a sequence.
func (d *decoder) enter(st state) {
	d.state, d.n, d.held = st, 0, d.held[:0]
}

// reset goes back to ground and lets go of a large buffer.
func (d *decoder) reset() {
	d.enter(ground)
	if cap(d.held) > maxCSI {
		d.held = nil
	}
}

// sequence reads one byte of an escape or a control sequence.
func (d *decoder) sequence(to target, s string) string {
	c := s[0]
	if c == esc {
		d.enter(escape)
		return s[1:]
	}
	if c == can || c == sub {
		d.reset()
		return s[1:]
	}
	switch d.state {
	case escape:
		return d.escape(s)
	case intermediate:
		d.n++
		switch {
		case c >= 0x20 && c <= 0x2f && d.n <= maxIntermediate:
			return s[1:]
		case c >= 0x30 && c < del:
			d.reset()
			return s[1:]
		}
	case csi:
		d.n++
		switch {
		case c >= 0x20 && c <= 0x3f && d.n <= maxCSI:
			d.held = append(d.held, c)
			return s[1:]
		case c >= 0x40 && c < del:
			to.control(d.held, c)
			d.reset()
			return s[1:]
		}
	case stringEscape:
		// Any escape ends a control string; ESC \ is the one that should.
		d.enter(escape)
		return d.escape(s)
	}
	d.reset() // not part of a sequence: text, or a control of its own
	return s
}

// escape reads the byte after an ESC.
func (d *decoder) escape(s string) string {
	switch c := s[0]; {
	case c == '[':
		d.enter(csi)
	case c == ']':
		d.enter(stringOSC)
		d.held = append(d.held, c)
	case c == 'P' || c == 'X' || c == '^' || c == '_':
		d.enter(stringOther)
		d.held = append(d.held, c)
	case c >= 0x20 && c <= 0x2f:
		d.enter(intermediate)
	case c >= 0x30 && c < del:
		d.reset()
	default:
		d.reset()
		return s
	}
	return s[1:]
}

// controlString reads up to the end of an OSC, DCS, SOS, PM or APC.
func (d *decoder) controlString(to target, s string) string {
	for i := 0; i < len(s); {
		c, size := s[i], 1
		switch {
		case c == esc:
			d.hold(s[:i])
			d.state = stringEscape
			return s[i+1:]
		case c == can, c == sub, c == bel && d.state == stringOSC:
			d.reset()
			return s[i+1:]
		case c == '\n' && d.state == stringOSC:
			d.hold(s[:i])
			d.release(to)
			return s[i:]
		case c >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 && !utf8.FullRuneInString(s[i:]) {
				d.hold(s[:i])
				d.keep(s[i:])
				return ""
			}
			if r == 0x9c { // ST as one character
				d.reset()
				return s[i+size:]
			}
		}
		i += size
		if d.n+i >= maxString {
			d.reset()
			return s[i:]
		}
	}
	d.hold(s)
	return ""
}

// hold counts bytes of a control string and keeps the first of them.
func (d *decoder) hold(s string) {
	d.n += len(s)
	if room := MaxHeld - len(d.held); room > 0 {
		d.held = append(d.held, s[:min(room, len(s))]...)
	}
}

// release gives what turned out not to be a control string back as text. One that did
// not fit in what is held stays removed.
func (d *decoder) release(to target) {
	whole := d.n < MaxHeld
	// By way of runes, so that no byte at the end waits for the rest of a
	// character: what was held is not where the stream goes on.
	text := string([]rune(string(d.held)))
	d.reset()
	if whole {
		d.ground(to, text) // holds no ESC, so the state stays ground
	}
}
