package result

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/htmltext"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// placeholder is the text/plain of an object whose class has no text of its
// own, as IPython 9 makes it.
var placeholder = regexp.MustCompile(`^<IPython\.(core|lib)\.display\.\w+ object>$`)

// dataFrame is the table of a data frame. Its plain text breaks wide tables into
// pieces and leaves no way to tell where a column begins.
var dataFrame = regexp.MustCompile(`<table[^>]*\bclass="[^"]*\bdataframe\b`)

// bundleText returns the text of a bundle, and whether it is Markdown that the
// code wrote. limit is for JSON.
func bundleText(b messages.Bundle, status string, limit int) (text string, markdown bool) {
	if text, ok := b.Text(messages.MIMEMarkdown); ok {
		return text, true
	}
	plain, hasPlain := b.Text(messages.MIMEPlain)
	if html, ok := b.Text(messages.MIMEHTML); ok && dataFrame.MatchString(html) {
		if text := htmltext.Markdown(html); text != "" {
			return text, false
		}
	}
	if hasPlain && !placeholder.MatchString(plain) {
		return plain, false
	}
	if html, ok := b.Text(messages.MIMEHTML); ok {
		if text := htmltext.Markdown(html); text != "" {
			return text, false
		}
	}
	if latex, ok := b.Text(messages.MIMELaTeX); ok {
		return latex, false
	}
	if raw, ok := b[messages.MIMEJSON]; ok {
		return jsonText(raw, limit), false
	}
	if hasPlain {
		return plain, false
	}
	var notes []string
	for _, mime := range slices.Sorted(maps.Keys(b)) {
		switch mime {
		case messages.MIMEPNG, messages.MIMEJPEG, messages.MIMEGIF, messages.MIMEWebP, messages.MIMEHTML, status:
		default:
			notes = append(notes, fmt.Sprintf("[%s of %s not shown]", mime, budget.Size(int64(len(b[mime])))))
		}
	}
	return strings.Join(notes, "\n"), false
}

// jsonText is the pretty form of a JSON value, cut to limit bytes.
func jsonText(raw messages.RawJSON, limit int) string {
	text := string(raw)
	if len(raw) <= 4*limit { // indenting what is cut anyway is of no use
		var b bytes.Buffer
		if json.Indent(&b, raw, "", "  ") == nil {
			text = b.String()
		}
	}
	if len(text) <= limit {
		return text
	}
	n := budget.Floor(text, limit)
	return fmt.Sprintf("%s\n[… %s more …]", text[:n], budget.Size(int64(len(text)-n)))
}

// statusEvent returns raw if it is an object with an "op" member.
func statusEvent(raw messages.RawJSON) bool {
	var o struct {
		Op *json.RawMessage `json:"op"`
	}
	return json.Unmarshal(raw, &o) == nil && o.Op != nil
}

// base64Data decodes base64 as kernels write it: with white space in it, and with or
// without its padding; false when it is none.
func base64Data(s string) ([]byte, bool) {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, s)
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return data, err == nil && len(data) > 0
}

// told is the text of an exception for a result: the user's own frames, when
// they are known, and what to do about it.
func told(e messages.ErrorDetails) string {
	if e.UserTraceback == "" {
		return traceback(e)
	}
	if e.Hint == "" {
		return e.UserTraceback
	}
	return e.UserTraceback + "\nhint: " + e.Hint
}

// traceback is the text of an exception as the kernel made it.
func traceback(e messages.ErrorDetails) string {
	if len(e.Traceback) > 0 {
		return strings.Join(e.Traceback, "\n")
	}
	if e.Message == "" {
		return e.Name
	}
	return e.Name + ": " + e.Message
}

// lineOf makes text one block: clean, and ended by a newline if there is any.
func lineOf(text string) string {
	text = sanitise.Clean(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

// BundleText returns the text of a bundle as a result would hold it, not yet
// cleaned. A status event of the brand has none. Any goroutine may call it.
func BundleText(b messages.Bundle, brand string) string {
	o := Options{Brand: brand}.withDefaults()
	if _, ok := b[o.statusMIME()]; ok {
		return ""
	}
	text, _ := bundleText(b, o.statusMIME(), o.JSONText)
	return text
}

// Traceback returns the text of an exception: its traceback as it came, colours
// included, or its name and message if it has none.
func Traceback(e messages.ErrorDetails) string { return traceback(e) }
