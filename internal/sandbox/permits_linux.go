package sandbox

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"
)

// permits reports whether the permissions of a file, its access list included, let a user
// do something with it, as they do for one who is not root.
func permits(path string, uid uint32, groups []uint32, what uint32) bool {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false
	}
	list := make([]byte, maxValue)
	n, err := unix.Getxattr(path, "system.posix_acl_access", list)
	if err != nil {
		n = 0 // it has none
	}
	return allows(st, entries(list[:n]), uid, groups, what)
}

// entry is one of an access list.
type entry struct {
	tag, perm uint16
	id        uint32
}

// What entries are about.
const (
	tagUser     = 0x02
	tagOwnGroup = 0x04
	tagGroup    = 0x08
	tagMask     = 0x10
)

// entries reads an access list as the kernel keeps it; nil: it is none that is known.
func entries(raw []byte) (list []entry) {
	const version, head, size = 2, 4, 8
	if len(raw) < head || binary.LittleEndian.Uint32(raw) != version {
		return nil
	}
	for raw = raw[head:]; len(raw) >= size; raw = raw[size:] {
		list = append(list, entry{binary.LittleEndian.Uint16(raw), binary.LittleEndian.Uint16(raw[2:]), binary.LittleEndian.Uint32(raw[4:])})
	}
	return list
}

// allows decides as the kernel does: by the owner, by a user that is named, by the groups,
// by all others, the first of them that it is.
func allows(st unix.Stat_t, list []entry, uid uint32, groups []uint32, what uint32) bool {
	const owner, group = 6, 3 // bits
	has := func(perm uint32) bool { return perm&what == what }
	if st.Uid == uid {
		return has(st.Mode >> owner)
	}
	mask, ownGroup := uint32(unix.R_OK|unix.W_OK|unix.X_OK), st.Mode>>group
	for _, e := range list {
		switch e.tag {
		case tagMask:
			mask = uint32(e.perm)
		case tagOwnGroup:
			ownGroup = uint32(e.perm) // the mode has the mask in its place
		}
	}
	for _, e := range list {
		if e.tag == tagUser && e.id == uid {
			return has(uint32(e.perm) & mask)
		}
	}
	in, may := slices.Contains(groups, st.Gid), false
	may = in && has(ownGroup&mask)
	for _, e := range list {
		if e.tag == tagGroup && slices.Contains(groups, e.id) {
			in, may = true, may || has(uint32(e.perm)&mask)
		}
	}
	if in {
		return may
	}
	return has(st.Mode)
}
