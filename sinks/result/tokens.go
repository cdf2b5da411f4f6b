package result

import (
	"fmt"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
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
	var e estimate
	fits, total := 0, 0
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
		return text, false
	}
	fits = budget.Floor(text, fits)
	where := "It was not kept; print less, or print it in parts."
	if path != "" {
		where = "All of it is in " + path + ". Read only the parts that you need, with your file tools or with Python; if you cannot read files, tell the user that the output was cut."
	}
	return fmt.Sprintf("%s\n<system-reminder>\nThe output was too long (about %d tokens) and was cut after about %d tokens. %s\n</system-reminder>",
		text[:fits], total, limit, where), true
}

// Limit is [LimitTokens] for the text of a whole result: a text that is cut and has
// no artifact yet is kept in store, if that can be written. limit 0 is
// [DefaultTokens].
func Limit(r messages.Result, limit int, store *artifact.Store) messages.Result {
	if limit <= 0 {
		limit = DefaultTokens
	}
	if EstimateTokens(r.Text) <= limit {
		return r
	}
	if r.Artifact == nil {
		if info, err := store.Keep("text", "log", []byte(r.Text)); err == nil {
			uri := info.URI()
			r.Artifact = &uri
		}
	}
	path := ""
	if r.Artifact != nil {
		path = *r.Artifact
		if info, err := store.Resolve(path); err == nil {
			path = info.Path
		}
	}
	r.Text, _ = LimitTokens(r.Text, limit, path)
	return r
}
