package coppice

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// Completion is what could stand at the cursor.
type Completion struct {
	// Matches are whole replacements for the text from Start to the cursor, the
	// best first; at most 200.
	Matches []string `json:"matches"`
	// Start is where the word begins that they replace, in bytes of the code.
	Start int `json:"start"`
}

// introspectTimeout bounds a completion or an inspection: a property that is read for
// one is code of the user. How long a person waits is up to the ctx: the first
// completion of a kernel loads what it needs for it, which takes its time on a busy
// machine.
const introspectTimeout = time.Minute

//go:embed session_introspect.py
var introspectSource string

// Complete returns completions of code at the cursor, a number of bytes from its
// beginning. A Jupyter kernel, of whatever language, is asked with a
// complete_request; the interpreter of another backend with Python's rlcompleter.
// It is a call of its own: it waits for the calls before it, counts as a cell,
// and leaves no name behind. It ends with ctx, and after a minute. The error is that
// of [Session.Execute], or says how the call ended.
func (s *Session) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	var c Completion
	cursor, err := s.introspect(ctx, messages.IntrospectComplete, code, cursor, &c)
	if err != nil {
		return c, err
	}
	// Python counts characters.
	start := 0
	for range c.Start {
		_, n := utf8.DecodeRuneInString(code[start:])
		start += n
	}
	c.Start = min(start, cursor)
	return c, nil
}

// Inspect returns the signature and documentation of the name at the cursor, "" if there are
// none: the kernel's answer to an inspect_request, without colours. It is a call like that of
// [Session.Complete].
func (s *Session) Inspect(ctx context.Context, code string, cursor int) (string, error) {
	var found struct {
		Text string `json:"text"`
	}
	_, err := s.introspect(ctx, messages.IntrospectInspect, code, cursor, &found)
	return strings.TrimSpace(sanitise.Clean(found.Text)), err
}

func (s *Session) introspect(ctx context.Context, what messages.IntrospectKind, code string, cursor int, to any) (int, error) {
	cursor = min(max(cursor, 0), len(code))
	for cursor > 0 && cursor < len(code) && !utf8.RuneStart(code[cursor]) {
		cursor--
	}
	quoted, err := json.Marshal([]string{introspectSource, string(what), code})
	if err != nil {
		return cursor, fmt.Errorf("%s: %w", what, err)
	}
	// A list of JSON strings is one of Python strings, but for pairs of
	// surrogates, which json.Marshal does not write.
	characters := utf8.RuneCountInString(code[:cursor])
	call := fmt.Sprintf("(lambda source, what, code: exec(source, {'ns': globals(), 'show': display, 'what': what, 'code': code, 'cursor': %d}))(*%s)",
		characters, quoted)
	r, err := s.Execute(ctx, Request{
		Cells: []messages.Cell{{Code: call}}, Timeout: introspectTimeout, introspect: &messages.Introspect{Kind: what, Code: code, Cursor: characters},
	})
	if err != nil {
		return cursor, err
	}
	if r.Outcome != messages.OutcomeOK || len(r.JSON) != 1 {
		return cursor, fmt.Errorf("%s: the call ended as %s", what, r.Outcome)
	}
	if err := json.Unmarshal(r.JSON[0], to); err != nil {
		return cursor, fmt.Errorf("%s: read the answer: %w", what, err)
	}
	return cursor, nil
}
