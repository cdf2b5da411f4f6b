package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// admitted feeds an input to requests, and returns the lines that were let through and
// those that were answered.
func admitted(t *testing.T, most int, input string) (through, answered []string) {
	t.Helper()
	lines := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	}
	p := &pending{ctx: context.Background(), gone: func() bool { return true }, idle: make(chan struct{}, 1)}
	r := &requests{
		in: io.NopCloser(strings.NewReader(input)), open: p, most: most,
		refuse: func(line []byte) { answered = append(answered, strings.TrimSuffix(string(line), "\n")) },
	}
	p.ctx, _ = ended()
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return lines(string(data)), answered
}

// ended is a context that has.
func ended() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

// TestFrames: a line that cannot be served is answered, and the next one is read.
func TestFrames(t *testing.T) {
	t.Parallel()
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const other, third = `{"jsonrpc":"2.0","id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":"1","method":"ping"}`
	big := strings.Repeat(`x\"{[`, 40_000) // longer than a buffer, with what looks like structure
	long := func(members string) string { return `{"jsonrpc":"2.0",` + members + "}\n" }
	for name, tc := range map[string]struct {
		input    string
		through  []string
		answered string // parts of the answers, in order
	}{
		"plain":                  {ping + "\n\r\n" + other + "\r\n", []string{ping, other}, ""},
		"one id twice":           {ping + "\n" + ping + "\n" + third, []string{ping, third}, `"id":1 -32600 give each request an id of its own`},
		"without an end":         {ping, []string{ping}, ""},
		"too long, id first":     {long(`"id":7,"method":"m","params":{"id":8,"a":"`+big+`"}`) + ping + "\n", []string{ping}, `"id":7 -32600 longer than 100000 bytes`},
		"too long, id last":      {long(`"method":"m","params":["`+big+`",{"id":8}], "id" : "seven"`) + ping, []string{ping}, `"id":"seven" -32600`},
		"too long, notification": {long(`"method":"m","params":"`+big+`"`) + ping, []string{ping}, ""},
		"too long, not JSON":     {big + "\n" + ping, []string{ping}, `"id":null -32600`},
		"too long, no end":       {ping + "\n" + strings.TrimSpace(long(`"id":7,"method":"m","params":"`+big+`"`)), []string{ping}, `"id":7`},
		"no JSON":                {"{\n" + ping, []string{ping}, `"id":null -32700`},
		"no message":             {`{"jsonrpc":"1.0","id":3,"method":"m"}` + "\n" + `{}` + "\n7\n" + ping, []string{ping}, `"id":3 -32600 "id":null -32600 "id":null -32600`},
		"no answer":              {`{"jsonrpc":"1.0","id":3,"result":{}}` + "\n" + ping, []string{ping}, ""},
		"deep":                   {`{"jsonrpc":"2.0","id":3,"method":"m","params":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + "}\n" + ping, []string{ping}, `"id":3 -32600`},
		"a batch":                {"[" + ping + "," + other + ",7]\n[]\n" + third, []string{ping, other, third}, `"id":null -32600 "id":null -32600`},
		"an id that is none":     {`{"jsonrpc":"2.0","id":{},"method":"m"}` + "\n" + ping, []string{ping}, `"id":null -32600`},
	} {
		through, answered := admitted(t, 100_000, tc.input)
		require.Equal(t, tc.through, through, name)
		said := strings.Join(answered, "\n")
		for part := range strings.FieldsSeq(tc.answered) {
			at := strings.Index(said, part)
			require.GreaterOrEqual(t, at, 0, "%s: %s", name, said)
		}
		require.Len(t, answered, strings.Count(tc.answered, "-32")+strings.Count(tc.answered, `"id":7`)-strings.Count(tc.answered, `"id":7 -32`), name)
		for _, a := range answered {
			require.True(t, json.Valid([]byte(a)), a)
		}
	}

	// An answer of the client that is too long fails what waits for it.
	through, answered := admitted(t, 100_000, long(`"id":7,"result":{"a":"`+big+`"}`))
	require.Empty(t, answered)
	require.Len(t, through, 1)
	require.Contains(t, through[0], `"id":7`)
	require.Contains(t, through[0], `"error":`)
}

// FuzzFrames ends, and answers every line or lets it through as one message.
func FuzzFrames(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n[]\n{\n")
	f.Fuzz(func(t *testing.T, input string) {
		through, answered := admitted(t, 64, input)
		for _, line := range append(through, answered...) {
			require.True(t, json.Valid([]byte(line)), line)
		}
	})
}
