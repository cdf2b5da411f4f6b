package result

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
)

// DefaultTokens is the limit of the shape that counts tokens.
const DefaultTokens = 20_000

// EstimateTokens says about how many tokens a text has for a model, without a
// vocabulary: 2 for each CJK ideograph, 1.3 for each word of ASCII letters, 1
// for every other character, blanks and the characters of mixed words included;
// and not less than a quarter of the characters.
//
//	"hello world" 3    "1 2 3" 5    two ideographs 4    40 letters 10
func EstimateTokens(s string) int {
	var e estimate
	for _, r := range s {
		e.add(r)
	}
	return e.tokens()
}

// estimate counts the characters of a text from left to right.
type estimate struct {
	all, cjk, words, other int
	letters                int  // of the word that goes on
	mixed                  bool // it is not letters alone
	begun                  bool
}

func (e *estimate) add(r rune) {
	e.all++
	switch {
	case r == ' ', r == '\n', r == '\t', r == '\r', r == '\v', r == '\f', r == 0x85, r == 0xa0, r == 0x3000:
		e.endWord()
		e.other++
	case r >= 0x4e00 && r <= 0x9fff:
		e.begun, e.mixed = true, true
		e.cjk++
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		e.begun = true
		e.letters++
	default:
		e.begun, e.mixed = true, true
		e.other++
	}
}

func (e *estimate) endWord() {
	switch {
	case e.begun && !e.mixed:
		e.words++
	default:
		e.other += e.letters
	}
	e.begun, e.mixed, e.letters = false, false, 0
}

func (e estimate) tokens() int {
	e.endWord() // of a copy
	return max((20*e.cjk+13*e.words+10*e.other)/10, e.all/4)
}

// LimitTokens is the alternative to the notice of a cut text: a text of more
// than limit tokens, as [EstimateTokens] counts them, keeps the longest head
// that fits, and a <system-reminder> tells the model that it was cut and where
// all of it is. path is the file with the whole text, or an artifact's name. A
// text that fits is returned as it is; limit 0 is [DefaultTokens].
func LimitTokens(text string, limit int, path string) (limited string, cut bool) {
	if limit <= 0 {
		limit = DefaultTokens
	}
	head, total := headOf(text, limit)
	if total <= limit {
		return text, false
	}
	return head + "\n" + reminder(messages.Truncation{
		TotalTokens: int64(total), MaxTokens: int64(limit), TotalBytes: int64(len(text)), TotalLines: linesIn(text), Path: path,
	}, ""), true
}

// headOf returns the longest beginning of a text that has at most limit tokens, and how
// many the text has.
func headOf(text string, limit int) (head string, total int) {
	var e estimate
	fits := 0
	for i, r := range text {
		e.add(r)
		// The estimate can fall where a word ends, so what comes later counts.
		if e.tokens() <= limit {
			fits = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				fits = i + 1
			}
		}
	}
	if total = e.tokens(); total <= limit {
		return text, total
	}
	return text[:budget.Floor(text, fits)], total
}

// linesIn counts the lines of a text; the last one counts without a newline, too.
func linesIn(text string) int64 {
	n := int64(strings.Count(text, "\n"))
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// reminder tells a model that a limit of tokens cut the text, how long the whole is,
// and where to read it. notKept says why that is not whole.
func reminder(t messages.Truncation, notKept string) string {
	size := fmt.Sprintf("about %d tokens", t.TotalTokens)
	if t.TotalBytes > 0 {
		size += fmt.Sprintf(", %s, %s", plural(t.TotalLines, "line"), budget.Size(t.TotalBytes))
	}
	const read = "Read only the parts that you need, with your file tools or with Python; if you cannot read files, tell the user that the output was cut."
	where := t.Path
	if where == "" {
		where = t.Artifact
	}
	switch {
	case where != "" && notKept != "":
		where = notKept + ". That part is in " + where + ". " + read
	case where != "":
		where = "All of it is in " + where + ". " + read
	case notKept != "":
		where = notKept + ". Print less, or print it in parts."
	default:
		where = "It was not kept; print less, or print it in parts."
	}
	return fmt.Sprintf("<system-reminder>\nThe output was too long (%s) and was cut after about %d tokens. %s\n</system-reminder>", size, t.MaxTokens, where)
}

// plural is a number with the word for what is counted.
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// seen is about how many tokens all cells have written.
func (f *Fold) seen() (n int) {
	for _, c := range f.cells {
		n += c.tokens.tokens()
	}
	return n
}

// limit leaves as many tokens of the cells' texts as the options allow, from the
// beginning, and says what is missing: nil if that is nothing. t is what the windows
// say of that.
func (f *Fold) limit(cells []messages.CellOutput, t *messages.Truncation) *messages.Truncation {
	whole := t == nil
	if whole {
		t = &messages.Truncation{}
	}
	total, left := 0, f.o.Tokens
	shown := messages.Truncation{
		Direction: "head", TruncatedBy: "tokens", TotalLines: t.TotalLines, TotalBytes: t.TotalBytes, MaxTokens: int64(f.o.Tokens),
		Artifact: f.spill.uri(), Path: f.spill.path(),
	}
	for i, c := range f.cells {
		text, elided := cells[i].Text, c.window.Truncated()
		if elided {
			text, _, _ = c.window.Parts()
		}
		head, tokens := headOf(text, left)
		if elided { // and the limit is passed in any case
			tokens = max(tokens, c.tokens.tokens())
		}
		total += tokens
		if whole {
			s := c.window.Stats()
			shown.TotalBytes += s.TotalBytes
			shown.TotalLines += s.TotalLines
		}
		if left == 0 && text != "" {
			head = "[not shown]\n"
		} else {
			shown.OutputBytes += int64(len(head))
			shown.OutputLines += linesIn(head)
		}
		if left -= tokens; left < 0 || elided {
			left = 0
		}
		cells[i].Text = head
	}
	if shown.TotalTokens = int64(total); whole && total <= f.o.Tokens {
		return nil
	}
	return &shown
}
