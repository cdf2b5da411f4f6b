package console

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPromptIsHarmless: a question of code cannot make a terminal do anything.
func TestAPromptIsHarmless(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	o := &Output{W: &shown, Terminal: true}
	o.ask("\x1b]52;c;RVZJTA==\x07\x1b]0;T\x07\x1b[2J\u202e\r\bwho? ")()
	require.Equal(t, "\r\x1b[Kwho? ", shown.String())
}

// TestWhatReachesATerminal: everything that an Output writes passes one gate on a
// terminal, and none elsewhere.
func TestWhatReachesATerminal(t *testing.T) {
	t.Parallel()
	const text = "a\x1b]0;T\x07\x1b[31mb\u202e\rc\n"
	picture := "\x1b_Ga=T,f=100,q=2,m=0;" + base64.StdEncoding.EncodeToString([]byte("PNG")) + "\x1b\\\n"
	for name, tc := range map[string]struct {
		write func(*Output)
		want  string
	}{
		"print":     {func(o *Output) { o.Print(text) }, "a\x1b[31mbc\n\x1b[0m"},
		"lines":     {func(o *Output) { o.Lines("a\x1b[2Jb") }, "ab\n"},
		"write":     {func(o *Output) { _, _ = o.Write([]byte("a\x1b]0")); _, _ = o.Write([]byte(";T\x07b\r")) }, "ab"},
		"a drawing": {func(o *Output) { o.Draw(text) }, "a\x1b[31mb\rc\n"},
		"a picture": {func(o *Output) { o.Draw(picture) }, picture},
		"repainted": {func(o *Output) { o.Repaint([]string{"a\x1b[2Jb"}, 1) }, "\x1b[1A\x1b[Jab\n"},
		"progress":  {func(o *Output) { o.repaint("a\x1b]0;T\x07\nb") }, "\ra\nb\x1b[K"},
	} {
		var shown bytes.Buffer
		tc.write(&Output{W: &shown, Terminal: true})
		require.Equal(t, tc.want, shown.String(), name)
	}
	var file bytes.Buffer
	o := &Output{W: &file}
	o.Print(text)
	o.Draw(text)
	_, _ = o.Write([]byte(text))
	require.Equal(t, strings.Repeat(text, 3), file.String())
}
