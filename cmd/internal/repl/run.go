package repl

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// Run shows the screen until the user leaves or ctx ends. A cell that runs then
// is interrupted, and Run waits for its end.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &model{o: o, ctx: ctx, history: loadHistory(o.History)}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler())
	m.send = p.Send // once the loop has ended it drops what it is sent
	_, err := p.Run()
	cancel()
	m.calls.wait()
	if err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("show the screen: %w", err)
	}
	return nil
}
