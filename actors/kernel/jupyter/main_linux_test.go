package jupyter_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// withCommon runs the tests and then ends the gateway that some of them share.
type withCommon struct{ m *testing.M }

// Run is what goleak calls, before it looks for goroutines.
func (w withCommon) Run() int {
	code := w.m.Run()
	if err := endCommon(); err != nil {
		fmt.Fprintln(os.Stderr, "the shared gateway:", err)
		code = max(code, 1)
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(withCommon{m}) }
