package sanitise

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Terminal is the last thing that text passes on its way to a terminal, whoever wrote
// it: our own drawing and what came from outside alike. What passes is printable text,
// newline and tab; colours (SGR) but those that conceal; the erasure of the rest of a
// line (EL); and pictures, in the forms of [Picture]. Everything else is removed: other
// control sequences and controls, and the characters that override the direction of
// text, with which a name can be made to look like another one. The zero value is ready.
//
// Unlike a [Filter] it knows nothing of who may use colours: what comes from outside
// passes a Filter or a [Screen] first, where that is asked.
type Terminal struct {
	// Returns lets carriage return and backspace pass, as a drawing needs them that
	// overwrites its own line.
	Returns bool

	decoder decoder
	out     []byte
	styled  bool
}

// Append appends what passes of chunk to dst. A sequence or a character that is cut
// goes on with the next chunk; a picture must be whole.
func (t *Terminal) Append(dst []byte, chunk string) []byte {
	t.out = dst
	for chunk != "" {
		at, size := nextPicture(chunk)
		t.decoder.write((*terminalTarget)(t), chunk[:at])
		t.out = append(t.out, chunk[at:at+size]...)
		chunk = chunk[at+size:]
	}
	dst, t.out = t.out, nil
	return dst
}

// Close ends the text: it appends what is left of it to dst and, when a colour is
// still set, what resets it.
func (t *Terminal) Close(dst []byte) []byte {
	t.out = dst
	t.decoder.flush((*terminalTarget)(t))
	dst, t.out = t.out, nil
	if t.styled {
		dst = append(dst, "\x1b[0m"...)
		t.styled = false
	}
	return dst
}

// ForTerminal returns what a Terminal lets pass of a whole text.
func ForTerminal(text string) string {
	if plain(text) {
		return text
	}
	var t Terminal
	return string(t.Close(t.Append(nil, text)))
}

type terminalTarget Terminal

func (t *terminalTarget) newline() { t.out = append(t.out, '\n') }

func (t *terminalTarget) carriageReturn() { t.returns('\r') }
func (t *terminalTarget) backspace()      { t.returns('\b') }

func (t *terminalTarget) returns(c byte) {
	if t.Returns {
		t.out = append(t.out, c)
	}
}

func (t *terminalTarget) text(s string) {
	for s != "" {
		at := strings.IndexFunc(s, overrides)
		if at < 0 {
			t.out = append(t.out, s...)
			return
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		t.out = append(t.out, s[:at]...)
		s = s[at+size:]
	}
}

// overrides reports whether r embeds, overrides or isolates the direction of the text
// that follows it. The marks (U+200E, U+200F, U+061C), which only place punctuation,
// do not.
func overrides(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

func (t *terminalTarget) control(params []byte, final byte) {
	switch {
	case final == 'K' && (len(params) == 0 || len(params) == 1 && params[0] >= '0' && params[0] <= '2'):
	case final == 'm':
		var ok, reset bool
		if params, ok, reset = colours(params); !ok {
			return
		}
		t.styled = !reset
	default:
		return
	}
	t.out = append(append(append(t.out, esc, '['), params...), final)
}

// colours returns the parameters of SGR without those that conceal text, whether
// anything is left to be set, and whether it is a reset alone. A private sequence is
// not ok: CSI > 4 m sets a mode of the keyboard.
func colours(params []byte) (left []byte, ok, reset bool) {
	reset = true
	for _, c := range params {
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return nil, false, false
		}
		reset = reset && c == '0'
	}
	if !bytes.ContainsRune(params, '8') {
		return params, true, reset
	}
	var kept [][]byte
	parts := bytes.Split(params, []byte(";"))
	for i := 0; i < len(parts); i++ {
		n := 1
		switch p := bytes.TrimLeft(parts[i], "0"); {
		case string(p) == "8", bytes.HasPrefix(p, []byte("8:")):
			continue
		case string(p) != "38" && string(p) != "48" && string(p) != "58" || i+1 == len(parts):
		case string(parts[i+1]) == "5": // a colour by its number, which may be 8
			n = 3
		case string(parts[i+1]) == "2": // a colour by its parts
			n = 5
		}
		end := min(i+n, len(parts))
		kept = append(kept, parts[i:end]...)
		i = end - 1
	}
	return bytes.Join(kept, []byte(";")), len(kept) > 0, reset
}
