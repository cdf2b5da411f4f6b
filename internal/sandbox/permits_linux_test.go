package sandbox

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	const me, other, mine, theirs = 10, 11, 20, 21
	for name, c := range map[string]struct {
		uid, gid, mode uint32
		list           []entry
		want           bool
	}{
		"the owner":                        {me, theirs, 0o400, nil, true},
		"the owner, who may not":           {me, mine, 0o077, nil, false},
		"the group":                        {other, mine, 0o040, nil, true},
		"the group, which may not":         {other, mine, 0o704, nil, false},
		"others":                           {other, theirs, 0o004, nil, true},
		"others, who may not":              {other, theirs, 0o770, nil, false},
		"a user by name":                   {other, theirs, 0o740, []entry{{tagUser, 4, me}, {tagMask, 4, 0}}, true},
		"a user by name, masked":           {other, theirs, 0o704, []entry{{tagUser, 4, me}, {tagMask, 1, 0}}, false},
		"another user by name":             {other, theirs, 0o740, []entry{{tagUser, 4, 12}, {tagMask, 4, 0}}, false},
		"a group by name":                  {other, theirs, 0o770, []entry{{tagOwnGroup, 0, 0}, {tagGroup, 7, mine}, {tagMask, 7, 0}}, true},
		"a group by name that may not":     {other, theirs, 0o774, []entry{{tagGroup, 1, mine}, {tagMask, 7, 0}}, false},
		"one of two groups":                {other, mine, 0o770, []entry{{tagOwnGroup, 0, 0}, {tagGroup, 4, mine}, {tagMask, 7, 0}}, true},
		"the mask is not the group's word": {other, mine, 0o770, []entry{{tagOwnGroup, 0, 0}, {tagMask, 7, 0}}, false},
	} {
		st := unix.Stat_t{Uid: c.uid, Gid: c.gid, Mode: c.mode}
		require.Equal(t, c.want, allows(st, c.list, me, []uint32{mine, 22}, unix.R_OK), name)
		raw := binary.LittleEndian.AppendUint32(nil, 2)
		for _, e := range c.list {
			raw = binary.LittleEndian.AppendUint16(raw, e.tag)
			raw = binary.LittleEndian.AppendUint16(raw, e.perm)
			raw = binary.LittleEndian.AppendUint32(raw, e.id)
		}
		require.Equal(t, c.list, entries(raw), name)
	}
	require.Nil(t, entries(nil))
	require.Nil(t, entries([]byte{1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}))
}
