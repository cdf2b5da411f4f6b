package console

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/terminal"
)

// asked asks in a goroutine and returns where the answer comes.
func asked(ctx context.Context, ask func(context.Context, messages.InputRequest) (string, error), q messages.InputRequest) <-chan string {
	answer := make(chan string, 1)
	go func() {
		value, err := ask(ctx, q)
		if err != nil {
			value = "error: " + err.Error()
		}
		answer <- value
	}()
	return answer
}

func TestAPersonIsAsked(t *testing.T) {
	t.Parallel()
	tty, err := terminal.Open(100, 30)
	require.NoError(t, err)
	defer tty.Close()
	c := New(tty.Program, io.Discard, tty.Program, nil)
	require.NotNil(t, c.Answers(false, ""))
	p := &person{console: c, terminal: tty.Program, lines: newLineReader(tty.Program)}
	ask := p.answer
	await := func(pattern string) { t.Helper(); require.NoError(t, tty.Await(pattern, time.Minute)) }
	echoes := func() bool {
		yes, err := tty.Echoes()
		require.NoError(t, err)
		return yes
	}
	progress := c.StartProgress("painted over the question", false)
	defer progress.Done()

	answer := asked(t.Context(), ask, messages.InputRequest{Prompt: "name? "})
	await(`name\? `)
	require.NoError(t, tty.Type("Ada\n"))
	require.Equal(t, "Ada", <-answer)
	await(`name\? Ada`)

	answer = asked(t.Context(), ask, messages.InputRequest{Prompt: "word? ", Password: true})
	await(`word\? `)
	require.False(t, echoes())
	require.NoError(t, tty.Type("hush\n"))
	require.Equal(t, "hush", <-answer)
	require.True(t, echoes())
	require.NotContains(t, tty.Shown(), "hush")

	// A question that is over gives the terminal back. What is typed for it then
	// answers no other one.
	ctx, cancel := context.WithCancel(t.Context())
	answer = asked(ctx, ask, messages.InputRequest{Prompt: "lost? ", Password: true})
	await(`lost\? `)
	later := asked(t.Context(), ask, messages.InputRequest{Prompt: "delete everything? "})
	cancel()
	require.Equal(t, "error: context canceled", <-answer)
	await(`delete everything\? `)
	require.True(t, echoes())
	require.NoError(t, tty.Type("no\n"))
	require.Equal(t, "no", <-later)

	ctx, cancel = context.WithCancel(t.Context())
	answer = asked(ctx, ask, messages.InputRequest{Prompt: "first? "})
	await(`first\? `)
	cancel()
	<-answer
	require.NoError(t, tty.Type("yes\n"))
	require.Eventually(t, func() bool { return len(p.lines.pending) == 1 }, time.Minute, time.Millisecond)
	answer = asked(t.Context(), ask, messages.InputRequest{Prompt: "second? "})
	await(`second\? `)
	require.NoError(t, tty.Type("maybe\n"))
	require.Equal(t, "maybe", <-answer)
}

func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for name, in := range map[string]io.Reader{"a pipe": strings.NewReader("x"), "a device": null} {
		require.Nil(t, New(in, io.Discard, io.Discard, nil).Answers(false, ""), name)
	}
	require.Nil(t, New(strings.NewReader("x"), io.Discard, io.Discard, nil).Answers(true, "-"), "the file is standard input")
}

func TestLinesAnswer(t *testing.T) {
	t.Parallel()
	in, lines := io.Pipe()
	defer lines.Close()
	ask := New(in, io.Discard, io.Discard, nil).Answers(true, "")
	write := func(text string) {
		_, err := io.WriteString(lines, text)
		require.NoError(t, err)
	}
	// A line that comes after its question is over is for the next one: whoever
	// writes lines does not see which question there is.
	ctx, cancel := context.WithCancel(t.Context())
	first := asked(ctx, ask, messages.InputRequest{})
	go write("one\r\ntwo\nthree")
	require.Equal(t, "one", <-first)
	require.Equal(t, "two", <-asked(ctx, ask, messages.InputRequest{Password: true}))
	waits := asked(ctx, ask, messages.InputRequest{})
	cancel()
	require.Equal(t, "error: context canceled", <-waits)
	require.NoError(t, lines.Close())
	require.Equal(t, "three", <-asked(t.Context(), ask, messages.InputRequest{}))
	require.Equal(t, "error: EOF", <-asked(t.Context(), ask, messages.InputRequest{}))
}
