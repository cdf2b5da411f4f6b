package runner_test

import (
	"strconv"

	"github.com/coppice-run/coppice/actors/kernel/runner"
)

func prelude(code string) runner.Options { return runner.Options{Prelude: code} }

// quote returns a Python literal for plain text.
func quote(s string) string { return strconv.Quote(s) }

// play is what the test binary does as a host.
func play(string) int { return 2 }
