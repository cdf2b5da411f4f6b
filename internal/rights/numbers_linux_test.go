package rights

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNumbers are those of all control messages that have descriptors.
func TestNumbers(t *testing.T) {
	who := unix.UnixCredentials(&unix.Ucred{Pid: 1})
	for name, c := range map[string]struct {
		extra []byte
		want  []int
		bad   bool
	}{
		"nothing":          {nil, nil, false},
		"one":              {unix.UnixRights(7), []int{7}, false},
		"some":             {unix.UnixRights(7, 9, 8), []int{7, 9, 8}, false},
		"two messages":     {append(unix.UnixRights(7), unix.UnixRights(9, 8)...), []int{7, 9, 8}, false},
		"none":             {unix.UnixRights(), nil, false},
		"of another kind":  {who, nil, false},
		"beside another":   {append(who, unix.UnixRights(7)...), []int{7}, false},
		"less than a head": {unix.UnixRights(7)[:5], nil, false},
		"cut":              {unix.UnixRights(7, 8, 9)[:unix.CmsgLen(4)], nil, true},
		"half of one":      {half(), nil, true},
		"of no length":     {make([]byte, unix.CmsgSpace(4)), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := numbers(c.extra)
			require.Equal(t, c.bad, err != nil, "%v", err)
			require.Equal(t, c.want, got)
		})
	}
}

// half is a control message whose last descriptor has two bytes.
func half() []byte {
	extra := unix.UnixRights(7, 8)
	(*unix.Cmsghdr)(unsafe.Pointer(&extra[0])).SetLen(unix.CmsgLen(6))
	return extra
}

// FuzzNumbers reads anything as a control message.
func FuzzNumbers(f *testing.F) {
	f.Add(unix.UnixRights(7, 9))
	f.Add(unix.UnixCredentials(&unix.Ucred{Pid: 1}))
	f.Add(append(unix.UnixRights(7), 1, 2, 3))
	f.Add(half())
	f.Fuzz(func(t *testing.T, extra []byte) {
		got, err := numbers(extra)
		if err != nil {
			require.Empty(t, got)
		}
		require.LessOrEqual(t, 4*len(got), len(extra))
	})
}
