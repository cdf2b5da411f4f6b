package mcpserver

import (
	"fmt"
	"strings"
)

// tail gathers text and keeps the last maxNote bytes of it.
type tail struct {
	text []byte
	cut  int // bytes that were dropped
}

func (t *tail) add(text string) {
	t.text = append(t.text, text...)
	if over := len(t.text) - maxNote; over > maxNote { // now and then, not for each line
		t.cut += over
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

func (t *tail) len() int { return len(t.text) }

// take returns what there is, and is empty then.
func (t *tail) take() string {
	if over := len(t.text) - maxNote; over > 0 {
		t.cut += over
		t.text = t.text[over:]
	}
	text := string(t.text)
	if t.cut > 0 {
		text = fmt.Sprintf("… (%d bytes)\n%s", t.cut, strings.ToValidUTF8(text, ""))
	}
	*t = tail{}
	return text
}
