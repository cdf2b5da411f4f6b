package handover_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary a successor: the step after which it waits to be killed, or
// with which it ends, the folder, the process that is to be replaced, and its token.
const roleEnv = "COPPICE_TEST_SUCCESSOR"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		if err := succeed(context.Background(), strings.Split(role, " ")); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
