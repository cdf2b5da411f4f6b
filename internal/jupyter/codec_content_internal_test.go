package jupyter

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

// TestPlainStream holds which forms are read the fast way: what kernels send, and no other.
func TestPlainStream(t *testing.T) {
	for _, tt := range []struct {
		content string
		want    messages.Stream
		ok      bool
	}{
		{`{"name": "stdout", "text": "a\n\"b\" é"}`, messages.Stream{Name: "stdout", Text: "a\n\"b\" é"}, true},
		{`{"text":"","name":"stderr"}`, messages.Stream{Name: "stderr"}, true},
		{`{"name": "stdout", "text": "\u00e9"}`, messages.Stream{}, false},
		{`{"name": "stdout", "text": "a", "coppice_late": {"begin": true}}`, messages.Stream{}, false},
		{`{"name": "stdin", "text": "a"}`, messages.Stream{}, false},
		{`{"name": "stdout"}`, messages.Stream{}, false},
		{`{"name": "stdout", "text": "a"} `, messages.Stream{}, false},
		{`{"name": "stdout", "text": "a",}`, messages.Stream{}, false},
		{`{"name": "stdout" "text": "a"}`, messages.Stream{}, false},
		{`{"name": "stdout", "text": 1}`, messages.Stream{}, false},
		{`{}`, messages.Stream{}, false},
		{``, messages.Stream{}, false},
	} {
		got, ok := plainStream([]byte(tt.content))
		require.Equal(t, tt.ok, ok, tt.content)
		if ok {
			require.Equal(t, tt.want, got, tt.content)
		}
	}
}

func FuzzPlainStream(f *testing.F) {
	f.Add([]byte(`{"name": "stdout", "text": "a\n"}`))
	f.Add([]byte(`{"text":"\/","name":"stderr","name":"stdout"}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, ok := plainStream(content)
		if !ok {
			return
		}
		var want struct{ Name, Text string }
		require.NoError(t, json.Unmarshal(content, &want))
		require.Equal(t, messages.Stream{Name: messages.StreamName(want.Name), Text: want.Text}, got)
	})
}
