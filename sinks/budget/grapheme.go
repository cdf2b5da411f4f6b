package budget

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

const (
	// MaxCluster is how many bytes a character that is made of several code
	// points may have and still is not cut: a letter with its accents, a flag, a
	// family of emoji. A longer one is cut between two code points, so that a
	// flood of accents can neither fill memory nor empty the text.
	MaxCluster = 64
	// lookBack is how far a cut looks for a place that surely begins a
	// character: an ASCII byte.
	lookBack = 4 * MaxCluster
)

// Floor returns the last place at or before at where s can be cut without
// cutting a character that people see as one (UAX #29). It looks at no more than
// a few hundred bytes around the place, however long s is; where there is no
// such place within [MaxCluster] bytes it is the last one between two code
// points. Any goroutine may call it.
func Floor[T string | []byte](s T, at int) int {
	switch {
	case at <= 0:
		return 0
	case at >= len(s):
		return len(s)
	}
	pos := begin(s, at)
	end := min(len(s), at+MaxCluster+utf8.UTFMax)
	for pos < at {
		n := size(s[pos:end])
		if pos+n > at {
			break
		}
		pos += n
	}
	if at-pos <= MaxCluster {
		return pos
	}
	for pos = at; pos > 0 && !utf8.RuneStart(s[pos]); {
		pos--
	}
	return pos
}

// begin returns a place at or before at where a character begins.
func begin[T string | []byte](s T, at int) int {
	first := max(0, at-lookBack)
	for i := at; i >= first; i-- {
		if s[i] < utf8.RuneSelf && (s[i] != '\n' || i == 0 || s[i-1] != '\r') {
			return i
		}
	}
	for first < at && !utf8.RuneStart(s[first]) {
		first++
	}
	return first
}

// size is the length of the first character of s.
func size[T string | []byte](s T) int {
	first := 0
	switch s := any(s).(type) {
	case string:
		first = len(graphemes.FromString(s).First())
	case []byte:
		first = len(graphemes.FromBytes(s).First())
	}
	return max(1, first)
}

// seam is what stands next to a cut on the side that is not shown: what follows
// the head, and what is before the tail.
type seam struct {
	after, before []byte
	// far says that there was more before the tail than before holds.
	far bool
}

// dropped adds the text that was elided last: it follows what was elided before.
func (s *seam) dropped(text []byte) {
	if n := min(len(text), MaxCluster-len(s.after)); n > 0 {
		s.after = append(s.after, text[:n]...)
	}
	if len(text) > lookBack {
		text, s.far = text[len(text)-lookBack:], true
	}
	s.before = append(s.before, text...)
	if extra := len(s.before) - lookBack; extra > 0 {
		s.before, s.far = s.before[:copy(s.before, s.before[extra:])], true
	}
}

// prepended adds text that was elided from the end of the head.
func (s *seam) prepended(text []byte) {
	if !s.far {
		s.before = append(append([]byte(nil), text...), s.before...)
		if extra := len(s.before) - lookBack; extra > 0 {
			s.before, s.far = s.before[extra:], true
		}
	}
	if len(text) > MaxCluster {
		text = text[:MaxCluster]
	}
	s.after = append(append([]byte(nil), text...), s.after...)
	s.after = s.after[:min(len(s.after), MaxCluster)]
}

// head returns how much of the head is shown.
func (s *seam) head(head []byte) int {
	if len(head) == 0 || len(s.after) == 0 {
		return len(head)
	}
	near := head[max(0, len(head)-2*lookBack):]
	text := append(append(make([]byte, 0, len(near)+len(s.after)), near...), s.after...)
	return len(head) - len(near) + Floor(text, len(near))
}

// tail returns how much at the beginning of the tail belongs to a character that
// is elided. head is what comes before what was elided: where that is short, it says how flags pair.
func (s *seam) tail(head, tail []byte) int {
	if len(s.before) == 0 || len(tail) == 0 {
		return 0
	}
	if s.far {
		head = nil
	}
	head = head[max(0, len(head)-lookBack):]
	near := tail[:min(len(tail), MaxCluster+utf8.UTFMax)]
	text := append(append(append(make([]byte, 0, len(head)+len(s.before)+len(near)), head...), s.before...), near...)
	at := len(head) + len(s.before)
	pos := begin(text, at)
	for pos < at {
		pos += size(text[pos:])
	}
	if n := pos - at; n <= MaxCluster {
		return n
	}
	return 0
}
