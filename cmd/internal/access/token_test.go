package access

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

func TestParse(t *testing.T) {
	t.Parallel()
	_, one := newToken("acme", httpserver.Run, time.Now(), time.Now().Add(time.Hour))
	data, err := encode([]Token{one})
	require.NoError(t, err)
	list, err := parse(data)
	require.NoError(t, err)
	require.Equal(t, []Token{one}, list)
	good := string(data)
	for name, text := range map[string]string{
		"nothing":            "",
		"no object":          "[]",
		"cut off":            good[:len(good)/2],
		"something after":    good + "{}",
		"another format":     strings.Replace(good, `"format": 1`, `"format": 2`, 1),
		"an unknown member":  strings.Replace(good, `"format": 1`, `"format": 1, "x": 1`, 1),
		"a token in clear":   strings.Replace(good, `"sha256"`, `"token"`, 1),
		"no hash":            strings.Replace(good, one.Hash, one.Hash[1:], 1),
		"a hash in capitals": strings.Replace(good, one.Hash, strings.Repeat("A", 64), 1),
		"an unknown scope":   strings.Replace(good, `"run"`, `"root"`, 1),
		"no scope":           strings.Replace(good, `"run"`, `""`, 1),
		"a tenant that goes": strings.Replace(good, `"acme"`, `"../x"`, 1),
		"no tenant":          strings.Replace(good, `"acme"`, `""`, 1),
		"an id that goes":    strings.Replace(good, one.ID, "../../..", 1),
		"no expiry":          strings.Replace(good, `"expires"`, `"created"`, 1),
		"twice":              strings.Replace(good, `"tokens": [`, `"tokens": [`+string(must(json.Marshal(one)))+",", 1),
	} {
		_, err := parse([]byte(text))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestATokenIsItself(t *testing.T) {
	t.Parallel()
	text, one := newToken("acme", httpserver.Run, time.Now(), time.Now().Add(time.Hour))
	require.True(t, strings.HasPrefix(text, prefix))
	require.NotContains(t, one.Hash, text)
	require.True(t, one.is(sha256.Sum256([]byte(text))))
	for _, other := range []string{"", text[:len(text)-1], text + " ", strings.ToLower(text), one.Hash, one.ID} {
		require.False(t, one.is(sha256.Sum256([]byte(other))), other)
	}
	require.False(t, Token{}.is(sha256.Sum256(nil)))
	require.False(t, Token{}.is([32]byte{}), "an empty hash is no hash")
}

func TestTenantNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "acme": true, "a-1": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "-a": false, "a-": false, "a/b": false, "..": false, "a.b": false, "a b": false, "ä": false, "a\n": false, strings.Repeat("a", 41): false,
	} {
		require.Equal(t, ok, CheckTenant(name) == nil, "%q", name)
	}
}

func FuzzParse(f *testing.F) {
	_, one := newToken("acme", httpserver.Run, time.Unix(1, 0), time.Unix(1e9, 0))
	data, err := encode([]Token{one})
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"format":1,"tokens":[]}`))
	f.Add([]byte(`{"format":1,"tokens":[null,{"id":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parse(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		for _, one := range list {
			require.NoError(t, one.check())
		}
		text, err := encode(list)
		if err != nil {
			return // a time beyond the year 9999
		}
		again, err := parse(text)
		require.NoError(t, err)
		require.Len(t, again, len(list))
		for i := range list {
			require.True(t, list[i].Expires.Equal(again[i].Expires))
			require.Equal(t, list[i].Hash, again[i].Hash)
		}
	})
}
