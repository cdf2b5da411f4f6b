package artifact_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/sinks/artifact"
)

// TestALongLineIsReadToItsEnd: by lines the part says where it ends, and bytes go on
// from there, whole characters at a time.
func TestALongLineIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	text := "first\n" + strings.Repeat("0123456789äöü木", 20_000) + "\nlast\n"
	info, err := store.Keep("text", "log", []byte(text))
	require.NoError(t, err)

	p, err := store.ReadLines(info.URI(), artifact.Range{First: 2})
	require.NoError(t, err)
	require.True(t, p.More)
	require.EqualValues(t, 6, p.Begin)
	require.EqualValues(t, len(text), p.Size)
	got := "first\n" + string(p.Text)
	for p.More {
		require.EqualValues(t, len(got), p.End)
		p, err = store.ReadBytes(info.URI(), p.End, 9999)
		require.NoError(t, err)
		require.True(t, utf8.Valid(p.Text))
		require.NotEmpty(t, p.Text)
		got += string(p.Text)
	}
	require.Equal(t, text, got)

	p, err = store.ReadBytes(info.URI(), 17, 4) // in the middle of a character
	require.NoError(t, err)
	require.Equal(t, "ö", string(p.Text))
	require.EqualValues(t, 18, p.Begin)
	p, err = store.ReadBytes(info.URI(), int64(len(text))+9, 0)
	require.NoError(t, err)
	require.Empty(t, p.Text)
	require.False(t, p.More)
	_, err = store.ReadBytes(info.URI(), -1, 0)
	require.ErrorIs(t, err, artifact.ErrBadRange)
}

// TestBytesThatAreNoText are read as they are: a part is never empty before the end.
func TestBytesThatAreNoText(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	raw := bytes.Repeat([]byte{0x80, 0xff, 0xf0}, 20)
	info, err := store.Keep("text", "log", raw)
	require.NoError(t, err)
	var got []byte
	for at := int64(0); at < int64(len(raw)); {
		p, err := store.ReadBytes(info.URI(), at, 5)
		require.NoError(t, err)
		require.Greater(t, p.End, at)
		got, at = append(got, p.Text...), p.End
	}
	require.LessOrEqual(t, len(got), len(raw))
}

// TestSearch compares with a search in the whole text.
func TestSearch(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	text := strings.Repeat("needle ", 3) + "\n" + strings.Repeat("x", 32<<10-30) + "needle\n" + strings.Repeat("y", 100_000) + "needleneedle\nend needle"
	info, err := store.Keep("text", "log", []byte(text))
	require.NoError(t, err)

	all, err := store.Search(t.Context(), info.URI(), "needle", 0, 0)
	require.NoError(t, err)
	require.Zero(t, all.Next)
	at := 0
	for _, m := range all.Matches {
		k := strings.Index(text[at:], "needle")
		require.GreaterOrEqual(t, k, 0)
		require.EqualValues(t, at+k, m.Offset)
		require.EqualValues(t, 1+strings.Count(text[:at+k], "\n"), m.Line)
		require.Contains(t, m.Around, "needle")
		require.NotContains(t, m.Around, "\n")
		require.LessOrEqual(t, len(m.Around), 406)
		at += k + len("needle")
	}
	require.Equal(t, -1, strings.Index(text[at:], "needle"))
	require.Equal(t, "end needle", all.Matches[len(all.Matches)-1].Around)

	var got []artifact.Match
	for next := int64(0); ; {
		part, err := store.Search(t.Context(), info.URI(), "needle", next, 2)
		require.NoError(t, err)
		got = append(got, part.Matches...)
		if next = part.Next; next == 0 {
			break
		}
	}
	require.Equal(t, all.Matches, got)

	none, err := store.Search(t.Context(), info.URI(), "thread", 0, 0)
	require.NoError(t, err)
	require.Empty(t, none.Matches)
	for _, bad := range []string{"", "a\nb", strings.Repeat("x", 2000)} {
		_, err = store.Search(t.Context(), info.URI(), bad, 0, 0)
		require.ErrorIs(t, err, artifact.ErrBadText)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = store.Search(ended, info.URI(), "needle", 0, 0)
	require.ErrorIs(t, err, context.Canceled)
}
