package toolspec_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolspec"
)

func TestObject(t *testing.T) {
	t.Parallel()
	data := []byte(" {\"a\\u0062\" : [1, {\"x\": \"]}\\\"\"}] ,\n\"c\":-1e3 , \"d\":{}, \"\": \"\\\\\", \"c\": null }\n")
	whole, got, err := toolspec.Object(data)
	require.NoError(t, err)
	require.Equal(t, `{"a\u0062":[1,{"x":"]}\""}],"c":-1e3,"d":{},"":"\\","c":null}`, string(whole))
	text := map[string]string{}
	for k, v := range got {
		text[k] = string(v)
	}
	require.Equal(t, map[string]string{"ab": `[1,{"x":"]}\""}]`, "c": "null", "d": "{}", "": `"\\"`}, text)
	for _, other := range []string{"null", "[]", " 1 ", `"{}"`, "true"} {
		_, members, err := toolspec.Object([]byte(other))
		require.NoError(t, err, other)
		require.Nil(t, members, other)
	}
	for _, wrong := range []string{"", "{", `{"a"}`, `{"a":1}x`, `{"a":"`, "\xef\xbb\xbf{}"} {
		_, _, err := toolspec.Object([]byte(wrong))
		require.Error(t, err, wrong)
	}
}

// FuzzObject compares with what the standard library finds.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"}"],"b":{"c":"\\\""}}`, `{}`, ` { "a" : 1.5e3 , "a" : true } `, `[1]`, `{"k":"\u00e9\ud800"}`, `{"":[[],[{}]]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var line bytes.Buffer
		var want map[string]json.RawMessage
		if json.Compact(&line, data) == nil {
			_ = json.Unmarshal(line.Bytes(), &want) // nil of what is no object
		}
		whole, got, err := toolspec.Object(data)
		if (err == nil) != (line.Len() > 0) || got != nil && string(whole) != line.String() || !cmp.Equal(want, got) {
			t.Fatalf("%v: %q, and the library has %q: %s", err, whole, line.String(), cmp.Diff(want, got))
		}
	})
}
