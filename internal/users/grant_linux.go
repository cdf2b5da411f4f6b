package users

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Access lists as the kernel keeps them in attributes of a file.
const (
	access      = "system.posix_acl_access"
	byDefault   = "system.posix_acl_default"
	version     = 2
	head, entry = 4, 8 // sizes in bytes

	tagOwner, tagUser, tagOwnGroup, tagGroup, tagMask, tagOther = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

	all    = 7
	enter  = 1
	nobody = 0xffffffff // the number of an entry that is for none in particular
)

// ace is an entry of an access list.
type ace struct {
	tag, perm uint16
	id        uint32
}

// Grant opens a folder to a group, for reading and writing, with what is made in it from
// then on. What is in it already keeps its permissions, and so do its owner and all
// others. undo takes that back; what has come to be in it stays as it is.
func Grant(dir string, group int) (undo func() error, err error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, fmt.Errorf("open %s to the users of sessions: %w", dir, err)
	}
	g := uint32(group) //nolint:gosec // of the range
	lists.Lock()
	defer lists.Unlock()
	for _, name := range []string{access, byDefault} {
		list, err := readList(dir, name)
		if err == nil {
			if len(list) == 0 {
				list = listOf(st.Mode)
			}
			err = writeList(dir, name, with(list, g, all))
		}
		if err != nil {
			return nil, fmt.Errorf("open %s to the users of sessions: %w; its file system may have no access lists", dir, err)
		}
	}
	return func() error { return withdraw(dir, g) }, nil
}

// lists is held while an access list is changed, which is read before: several servers
// of a process may change that of one folder.
var lists sync.Mutex

// Pass lets a group through the folders above one that others may not enter, and no more:
// it can list none of them. undo takes that back.
func Pass(dir string, group int) (undo func() error, err error) {
	g := uint32(group) //nolint:gosec // of the range
	var opened []string
	undo = func() error {
		var err error
		for _, dir := range opened {
			err = errors.Join(err, withdraw(dir, g))
		}
		return err
	}
	lists.Lock()
	defer lists.Unlock()
	for at := filepath.Dir(filepath.Clean(dir)); at != filepath.Dir(at); at = filepath.Dir(at) {
		var st unix.Stat_t
		err := unix.Stat(at, &st)
		if err == nil && st.Mode&1 != 0 {
			continue
		}
		var list []ace
		if err == nil {
			list, err = readList(at, access)
		}
		if err == nil {
			if len(list) == 0 {
				list = listOf(st.Mode)
			}
			err = writeList(at, access, with(list, g, enter))
		}
		if err != nil {
			lists.Unlock()
			err = errors.Join(fmt.Errorf("let the users of sessions through %s: %w; its file system may have no access lists", at, err), undo())
			lists.Lock()
			return nil, err
		}
		opened = append(opened, at)
	}
	return undo, nil
}

// withdraw takes a group from the lists of a folder.
func withdraw(dir string, group uint32) error {
	lists.Lock()
	defer lists.Unlock()
	var failed error
	for _, name := range []string{access, byDefault} {
		list, err := readList(dir, name)
		if errors.Is(err, unix.ENOENT) {
			return nil // it is gone, with its lists
		}
		if err == nil && len(list) > 0 {
			left := without(list, group)
			if name == byDefault && len(left) == len(listOf(0)) {
				err = unix.Removexattr(dir, name) // there was none before, or it said no more than the modes of files do
			} else {
				err = writeList(dir, name, left)
			}
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return fmt.Errorf("close %s to the users of sessions: %w", dir, failed)
	}
	return nil
}

// listOf is the list that says what a mode does.
func listOf(mode uint32) []ace {
	return []ace{{tagOwner, uint16(mode >> 6 & all), nobody}, {tagOwnGroup, uint16(mode >> 3 & all), nobody}, {tagOther, uint16(mode & all), nobody}}
}

// with adds a group that may so much. The mask, which bounds what groups may, lets it
// through, and nothing else that it did not.
func with(list []ace, group uint32, perm uint16) []ace {
	list = without(list, group)
	mask := perm
	for _, e := range list {
		if e.tag == tagMask {
			mask = perm | e.perm
			break
		}
		if e.tag == tagOwnGroup {
			mask = perm | e.perm
		}
	}
	list = slices.DeleteFunc(list, func(e ace) bool { return e.tag == tagMask })
	list = append(list, ace{tagGroup, perm, group}, ace{tagMask, mask, nobody})
	return sorted(list)
}

// without takes a group out, and the mask when there is no one else that it is for.
func without(list []ace, group uint32) []ace {
	left := slices.DeleteFunc(slices.Clone(list), func(e ace) bool { return e.tag == tagGroup && e.id == group })
	if !slices.ContainsFunc(left, func(e ace) bool { return e.tag == tagUser || e.tag == tagGroup }) {
		left = slices.DeleteFunc(left, func(e ace) bool { return e.tag == tagMask })
	}
	return left
}

func sorted(list []ace) []ace {
	slices.SortFunc(list, func(a, b ace) int {
		if a.tag != b.tag {
			return int(a.tag) - int(b.tag)
		}
		return int(int64(a.id) - int64(b.id))
	})
	return list
}

func readList(dir, name string) ([]ace, error) {
	const most = 64 << 10
	buf := make([]byte, most)
	n, err := unix.Getxattr(dir, name, buf)
	if errors.Is(err, unix.ENODATA) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if n < head || binary.LittleEndian.Uint32(buf) != version || (n-head)%entry != 0 {
		return nil, errors.New("its access list has a form that is not known")
	}
	var list []ace
	for b := buf[head:n]; len(b) > 0; b = b[entry:] {
		list = append(list, ace{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])})
	}
	return list, nil
}

func writeList(dir, name string, list []ace) error {
	buf := binary.LittleEndian.AppendUint32(nil, version)
	for _, e := range list {
		buf = binary.LittleEndian.AppendUint16(buf, e.tag)
		buf = binary.LittleEndian.AppendUint16(buf, e.perm)
		buf = binary.LittleEndian.AppendUint32(buf, e.id)
	}
	return unix.Setxattr(dir, name, buf, 0)
}
