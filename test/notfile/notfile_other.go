//go:build !unix

package notfile

import "testing"

// Kinds are those that this system has.
var Kinds = []Kind{Directory}

func put(tb testing.TB, kind Kind, _ string) {
	tb.Helper()
	tb.Fatalf("this system has no such thing as %s", kind)
}
