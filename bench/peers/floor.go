package peers

import (
	"context"
	"time"
)

// Floor measures the bare pipe's round trip alone, in a tenth of a second: what a
// figure that was taken at the same time is divided by. It returns the median, in
// microseconds.
func Floor(ctx context.Context, o Options) (float64, error) {
	o.Creates, o.Calls = 1, 500
	t, err := barePipe(ctx, o)
	if err != nil {
		return 0, err
	}
	return float64(t.execute.Summary().P50) / float64(time.Microsecond), nil
}
