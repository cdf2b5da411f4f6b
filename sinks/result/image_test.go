package result_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/result"
)

// pixel is a PNG of one colour, as base64.
func pixel(t *testing.T, edge int, r, g, b byte) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, edge, edge))
	for i := range edge * edge {
		m.Set(i%edge, i/edge, color.NRGBA{r, g, b, 255})
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, m))
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// noise is a PNG that takes some room.
func noise(t *testing.T) string {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, 27, 27))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = byte(random.Uint32())
	}
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, m))
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// webP is the beginning of a WebP of 3×2 with its chunk, filled up to its end.
func webP(kind string) []byte {
	b := make([]byte, 40)
	copy(b, "RIFF\x20\x00\x00\x00WEBP"+kind)
	switch at := b[20:]; kind {
	case "VP8X":
		at[4], at[7] = 2, 1
	case "VP8L":
		at[0] = 0x2f
		binary.LittleEndian.PutUint32(at[1:], 2|1<<14)
	case "VP8 ":
		copy(at[3:], "\x9d\x01\x2a\x03\x00\x02\x00")
	}
	return b
}

// TestImagesAreChecked: an image goes to a model with the type that its data have;
// what is none is said as text, and kept as an artifact.
func TestImagesAreChecked(t *testing.T) {
	t.Parallel()
	m := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black, color.White})
	var p, j, g bytes.Buffer
	require.NoError(t, png.Encode(&p, m))
	require.NoError(t, jpeg.Encode(&j, m, nil))
	require.NoError(t, gif.Encode(&g, m, nil))
	types := map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes(), "image/webp": webP("VP8 ")}
	show := func(mime, data string) (string, []messages.Image, *artifact.Store) {
		store := artifact.New(artifact.Options{Dir: t.TempDir()})
		f := result.New(result.Options{Store: store}, 1)
		f.Add(messages.Display{Data: messages.Bundle{mime: quoted(data)}})
		o := f.Output()
		require.NoError(t, f.Close())
		return o.Cells[0].Text, o.Images, store
	}
	for said := range types {
		for is, data := range types {
			text, images, _ := show(said, base64.StdEncoding.EncodeToString(data))
			require.Empty(t, text)
			require.Equal(t, []messages.Image{{MIME: is, Data: base64.StdEncoding.EncodeToString(data), Width: 3, Height: 2}}, images, "%s as %s", is, said)
			_, images, _ = show(said, base64.RawStdEncoding.EncodeToString(data))
			require.Len(t, images, 1, "without its padding")
		}
		for name, bad := range map[string][]byte{
			"the signature alone": []byte("\x89PNG"), "the header alone": p.Bytes()[:33], "text": []byte("Not found"), "HTML": []byte("<html>"),
			"half a PNG": p.Bytes()[:p.Len()-12], "half a JPEG": j.Bytes()[:j.Len()-2], "half a GIF": g.Bytes()[:g.Len()-1], "half a WebP": webP("VP8L")[:39],
			"SVG": []byte("<svg/>"),
		} {
			text, images, store := show(said, base64.StdEncoding.EncodeToString(bad))
			require.Empty(t, images, "%s as %s", name, said)
			require.True(t, strings.HasPrefix(text, "["+said+" not shown, its data "), text)
			require.True(t, strings.HasSuffix(text, ": artifact://0]\n"), text)
			info, err := store.Resolve("artifact://0")
			require.NoError(t, err)
			require.EqualValues(t, len(bad), info.Bytes)
		}
		text, images, _ := show(said, "no base64!")
		require.Empty(t, images)
		require.Equal(t, "["+said+" not shown, its data is not base64, 10B: artifact://0]\n", text)
	}
	for _, kind := range []string{"VP8X", "VP8L", "VP8 "} {
		_, images, _ := show("image/webp", base64.StdEncoding.EncodeToString(webP(kind)))
		require.Len(t, images, 1, kind)
		require.Equal(t, []int{3, 2}, []int{images[0].Width, images[0].Height}, kind)
	}
}
