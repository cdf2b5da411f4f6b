package opportunity

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary play a child instead of running tests, with play.
const roleEnv = "COPPICE_TEST_ROLE"

var play = func(string) {}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play(role)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
