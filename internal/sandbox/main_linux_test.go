package sandbox

import (
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The thread that the process began with cannot be thrown away: no test gets it.
	runtime.LockOSThread()
	goleak.VerifyTestMain(m)
}
