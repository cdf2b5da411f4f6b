package term

import (
	"os"

	"golang.org/x/sys/windows"
)

func hideInput(f *os.File) (restore func(), err error) {
	console := windows.Handle(f.Fd())
	var before uint32
	if err := windows.GetConsoleMode(console, &before); err != nil {
		return nil, err
	}
	hidden := before&^windows.ENABLE_ECHO_INPUT | windows.ENABLE_LINE_INPUT | windows.ENABLE_PROCESSED_INPUT
	if err := windows.SetConsoleMode(console, hidden); err != nil {
		return nil, err
	}
	return func() {
		_ = windows.SetConsoleMode(console, before) // a console that is gone shows nothing
	}, nil
}
