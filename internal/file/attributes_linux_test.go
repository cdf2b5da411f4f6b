package file_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/file"
)

// accessControlList is a list as Linux keeps it: the owner may read and write, user 1234
// may read, the group nothing, and the rest nothing. In the file's permission bits, those
// of the group are the mask, r--.
func accessControlList() []byte {
	const undefined = 0xffffffff
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{0x01, 6, undefined}, {0x02, 4, 1234}, {0x04, 0, undefined}, {0x10, 4, undefined}, {0x20, 0, undefined}} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

func attribute(t *testing.T, path, name string) string {
	t.Helper()
	value := make([]byte, 1<<10)
	n, err := unix.Getxattr(path, name, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return ""
	}
	require.NoError(t, err)
	return string(value[:n])
}

// TestWriteKeepsExtendedAttributes: a file that is replaced has its extended attributes
// afterwards, and its access control list.
func TestWriteKeepsExtendedAttributes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o640))
	// A file system without attributes has none to keep; the file is replaced all the same.
	want := map[string]string{}
	for name, value := range map[string]string{"user.origin": "a\x00b", "user.empty": "", "system.posix_acl_access": string(accessControlList())} {
		if err := unix.Setxattr(path, name, []byte(value), 0); err == nil {
			want[name] = value
		} else {
			require.ErrorIs(t, err, unix.EOPNOTSUPP)
		}
	}
	for range 2 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, file.Write(path, []byte("new"), file.WriteOptions{Like: info}))
		require.Equal(t, "new", content(t, path))
		now, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, info.Mode(), now.Mode())
		for name, value := range want {
			require.Equal(t, value, attribute(t, path, name), name)
		}
	}
}

// TestWriteTakesNoAccessFromTheFolder: a folder may give new files an access control
// list; a file that had none is not opened to others by being replaced.
func TestWriteTakesNoAccessFromTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o640))
	if err := unix.Setxattr(dir, "system.posix_acl_default", accessControlList(), 0); err != nil {
		require.ErrorIs(t, err, unix.EOPNOTSUPP)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, file.Write(path, []byte("new"), file.WriteOptions{Like: info}))
	require.Empty(t, attribute(t, path, "system.posix_acl_access"))
	now, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, info.Mode(), now.Mode())
}
