package home_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/home"
)

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2m": 2 * time.Minute, "1.5": 1500 * time.Millisecond, "10": 10 * time.Second, "250ms": 250 * time.Millisecond,
		"": 0, "0": 0, "-1": 0, "-1s": 0, "NaN": 0, "Inf": 0, "1e300": 0, "soon": 0, "2 m": 0, "9000000h": 0,
	} {
		got, err := home.Duration(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == 0, err != nil, text)
	}
}
