package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/messages"
)

// answers is who answers the questions of code: the lines of standard input when
// they were asked for, a person at a terminal, or nobody. A file "-" is standard
// input already.
func (a *app) answers(asked bool, file string) coppice.InputHandler {
	terminal := false
	if f, ok := a.in.(*os.File); ok {
		terminal = term.IsTerminal(f) && a.err.terminal
	}
	if file == "-" || !asked && !terminal {
		return nil
	}
	var mu sync.Mutex // one question at a time reads
	lines := bufio.NewReader(a.in)
	return func(ctx context.Context, q messages.InputRequest) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if terminal && !asked {
			if q.Password {
				return "", errors.New("a password would be shown on this terminal; give it with --stdin")
			}
			a.err.print(q.Prompt)
		}
		line, err := lines.ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			return "", err
		}
		return strings.TrimRight(line, "\r\n"), nil
	}
}
