package store

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sample is a record of each kind of part.
func sample(t testing.TB) (data, key []byte) {
	t.Helper()
	key = bytes.Repeat([]byte{7}, KeySize)
	sum := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	data, err := Seal(Body{
		Header: Header{Name: "a", Session: "a", Owners: []string{"o"}, Python: "3.12.1", Platform: "linux/amd64", Made: time.Unix(1, 0).UTC(), Manifest: json.RawMessage(`{}`), Sections: []int64{3, 1 << 20}},
		Parts:  []Part{{Sum: sum, Size: 3, Data: []byte("abc")}, {Sum: sum, Size: 1 << 20}},
	}, key)
	require.NoError(t, err)
	return data, key
}

// FuzzDecode: whatever is in a file, it is refused with a reason, or it is what was
// sealed.
func FuzzDecode(f *testing.F) {
	data, key := sample(f)
	f.Add(data)
	f.Add(data[:20])
	f.Add([]byte{})
	f.Add(magic)
	f.Add(append(bytes.Clone(data), 0))
	f.Fuzz(func(t *testing.T, some []byte) {
		b, err := Unseal(some, key)
		if err != nil {
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Problem)
			return
		}
		require.Equal(t, data, some, "only what was sealed is read")
		require.Equal(t, "a", b.Header.Name)
	})
}

// FuzzBody: a body that is sealed and makes no sense is refused too.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"header":{"name":"a","sections":[3]},"parts":[{"sum":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":3,"data":"YWJj"}]}`))
	f.Add([]byte(`{"header":{"sections":[-3]},"parts":[{"size":-3}]}`))
	f.Add([]byte(`{"header":{"sections":[99999999]},"parts":[{"sum":"../../../../etc/passwd","size":99999999}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var b Body
		if json.Unmarshal(text, &b) != nil || b.check() != nil {
			return
		}
		for _, p := range b.Parts {
			require.True(t, validSum(p.Sum))
			require.GreaterOrEqual(t, p.Size, int64(0))
		}
	})
}
