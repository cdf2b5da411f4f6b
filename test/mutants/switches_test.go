package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Changes are put into one program where they can be, also within one another.
func TestSwitches(t *testing.T) {
	t.Parallel()
	dir := module(t)
	source := `package p

import "time"

const Size = 2 * 3

type Kind string

func Hello(a, b int, s string, k Kind) bool {
	return a-b-1 < b*2 && s+"x" != "yx" || a%3 >= b/2 &&
		// on a line of its own
		b > 0 && (k <= "k" || len(s) > 1)
}

func Sum(n int, d time.Duration) (up, down int, all time.Duration) {
	for i := 0; i < n; i++ {
		up++
		down--
		all += d*2 + time.Second
	}
	return up, down, all
}
`
	test := `package p

import (
	"fmt"
	"hash/crc32"
	"testing"
	"time"
)

func TestAll(t *testing.T) {
	said := fmt.Sprint(Size)
	for a := -6; a < 7; a++ {
		for b := -6; b < 7; b++ {
			for _, s := range []string{"", "y", "zz"} {
				for _, k := range []Kind{"j", "k", "l"} {
					said += fmt.Sprint(Hello(a, b, s, k))
				}
			}
		}
	}
	said += fmt.Sprint(Sum(3, time.Minute))
	if sum := crc32.ChecksumIEEE([]byte(said)); sum != SUM {
		t.Fatal(sum)
	}
}
`
	for name, text := range map[string]string{"p.go": source, "p_test.go": test} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "p", name), []byte(strings.ReplaceAll(text, "SUM", "1234567890")), 0o600))
	}
	var places []spot
	for _, p := range []struct{ kind, code, at string }{
		{"ARITHMETIC_BASE", "2 * 3", "*"},
		{"ARITHMETIC_BASE", "a-b-1", "-b"},
		{"ARITHMETIC_BASE", "a-b-1", "-1"},
		{"ARITHMETIC_BASE", "b*2", "*"},
		{"ARITHMETIC_BASE", `s+"x"`, "+"}, // strings are not subtracted
		{"ARITHMETIC_BASE", "a%3", "%"},
		{"ARITHMETIC_BASE", "b/2", "/"},
		{"ARITHMETIC_BASE", "d*2 + time", "*"},
		{"ARITHMETIC_BASE", "d*2 + time", "+"},
		{"CONDITIONALS_BOUNDARY", "1 < b", "<"},
		{"CONDITIONALS_NEGATION", "1 < b", "<"},
		{"CONDITIONALS_NEGATION", `!= "yx"`, "!"},
		{"CONDITIONALS_BOUNDARY", "3 >= b", ">"},
		{"CONDITIONALS_NEGATION", "3 >= b", ">"},
		{"CONDITIONALS_BOUNDARY", "b > 0", ">"},
		{"CONDITIONALS_NEGATION", "b > 0", ">"},
		{"CONDITIONALS_BOUNDARY", `k <= "k"`, "<"},
		{"CONDITIONALS_BOUNDARY", "len(s) > 1", ">"},
		{"CONDITIONALS_BOUNDARY", "i < n", "<"},
		{"INVERT_LOGICAL", "b*2 && s", "&"},
		{"INVERT_LOGICAL", `"yx" || a`, "|"},
		{"INVERT_LOGICAL", "b/2 &&", "&"},
		{"INVERT_LOGICAL", "0 && (k", "&"},
		{"INVERT_LOGICAL", `"k" || len`, "|"},
		{"INCREMENT_DECREMENT", "up++", "+"},
		{"INCREMENT_DECREMENT", "down--", "-"},
		{"INVERT_ASSIGNMENTS", "all +=", "+"},
	} {
		before, _, found := strings.Cut(source, p.code)
		require.True(t, found, p.code)
		begin := len(before) + strings.Index(p.code, p.at)
		places = append(places, spot{p.kind, 1 + strings.Count(source[:begin], "\n"), begin - strings.LastIndex(source[:begin], "\n")})
	}
	_, err := try(t, dir, nil, places...)
	require.ErrorContains(t, err, "do not pass without a change")
	_, sum, _ := strings.Cut(err.Error(), "p_test.go:")
	var line, crc uint32
	_, err = fmt.Sscanf(sum, "%d: %d", &line, &crc)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p", "p_test.go"), []byte(strings.ReplaceAll(test, "SUM", fmt.Sprint(crc))), 0o600))

	out, err := try(t, dir, nil, places...)
	require.NoError(t, err, out)
	require.Contains(t, out, "p: 26 changes tried, 26 noticed (100.0 %), 0 of them as no test ended any more; 0 explained, 0 live; 1 more do not compile; 24 of them in one program\n")
}
