package sim_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// seedFlag picks one schedule; 0 runs the usual set.
var seedFlag = flag.Uint64("seed", 0, "run the schedule of this seed alone")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
