package result_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/result"
)

// display folds one display and returns the text and images of its call.
func display(t *testing.T, o result.Options, b messages.Bundle) (string, []messages.Image) {
	t.Helper()
	f := result.New(o, 1)
	f.Add(messages.Display{Data: b})
	out := f.Output()
	require.NoError(t, f.Close())
	require.Len(t, out.Cells, 1)
	return out.Cells[0].Text, out.Images
}

func quoted(s string) messages.RawJSON {
	return messages.RawJSON(`"` + strings.NewReplacer(`"`, `\"`, "\n", `\n`).Replace(s) + `"`)
}

func TestDrawingsAreKeptAndDescribed(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50"></svg>`
	for name, tc := range map[string]struct {
		bundle messages.Bundle
		want   string
		file   string // what the artifact holds
	}{
		"svg": {
			bundle: messages.Bundle{"image/svg+xml": quoted(svg), "text/plain": quoted("<IPython.core.display.SVG object>")},
			want:   "[image/svg+xml 100×50, 70B: artifact://0]\n", file: svg,
		},
		"svg of an object with a text": {
			bundle: messages.Bundle{"image/svg+xml": quoted(`<svg viewBox="0 0 8.5 4"/>`), "text/plain": quoted("Graph(3)")},
			want:   "Graph(3)\n[image/svg+xml 8.5×4, 26B: artifact://0]\n", file: `<svg viewBox="0 0 8.5 4"/>`,
		},
		"plotly": {
			bundle: messages.Bundle{
				"application/vnd.plotly.v1+json": messages.RawJSON(`{"data":[{"type":"bar","name":"sales","x":[1,2],"y":[3,4]},{"y":{"dtype":"f8","bdata":"AAAAAAAA8D8AAAAAAAAAQA=="}}],"layout":{"title":{"text":"Year"}}}`),
				"text/html":                      quoted("<div>a megabyte of script</div>"),
			},
			want: "[Plotly figure \"Year\": bar \"sales\" (2 points), scatter (2 points), 151B: artifact://0]\n",
		},
		"vega": {
			bundle: messages.Bundle{
				"application/vnd.vegalite.v5+json": messages.RawJSON(`{"title":"T","mark":{"type":"point"},"encoding":{"y":{"field":"b","aggregate":"mean"},"x":{"field":"a"}},"datasets":{"d":[{"a":1},{"a":2}]}}`),
				"text/plain":                       quoted("<VegaLite 5 object>\n\nIf you see this message, it means the renderer has not been enabled"),
			},
			want: "[Vega figure \"T\": point, x: a, y: mean(b), 2 rows, 140B: artifact://0]\n",
		},
		"malformed vega": {bundle: messages.Bundle{"application/vnd.vega.v5+json": messages.RawJSON(`[]`)}, want: "[Vega figure, 2B: artifact://0]\n", file: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := artifact.New(artifact.Options{Dir: t.TempDir()})
			got, images := display(t, result.Options{Store: store}, tc.bundle)
			require.Equal(t, tc.want, got)
			require.Empty(t, images)
			info, err := store.Resolve("artifact://0")
			require.NoError(t, err)
			data, err := os.ReadFile(info.Path)
			require.NoError(t, err)
			if tc.file != "" {
				require.Equal(t, tc.file, string(data))
			}
			got, _ = display(t, result.Options{}, tc.bundle)
			require.Equal(t, strings.ReplaceAll(tc.want, ": artifact://0", ""), got, "without a store it is described all the same")
		})
	}
}

func TestDrawingsOfOneCallAreBounded(t *testing.T) {
	t.Parallel()
	store := artifact.New(artifact.Options{Dir: t.TempDir()})
	f := result.New(result.Options{Store: store}, 1)
	for range 40 {
		f.Add(messages.Display{Data: messages.Bundle{"image/svg+xml": quoted("<svg/>")}})
	}
	text := f.Output().Cells[0].Text
	require.NoError(t, f.Close())
	require.Equal(t, 8, strings.Count(text, "not kept: the call has enough of them"))
	list, err := store.List()
	require.NoError(t, err)
	require.Len(t, list, 32)
}

func TestImagesAreMeasuredAndMadeSmaller(t *testing.T) {
	t.Parallel()
	picture := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for x := range 200 {
		for y := range 100 {
			picture.Set(x, y, color.RGBA{R: uint8(x), A: 255})
		}
	}
	var p, j bytes.Buffer
	require.NoError(t, png.Encode(&p, picture))
	require.NoError(t, jpeg.Encode(&j, picture, nil))
	for mime, data := range map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes()} {
		raw := base64.StdEncoding.EncodeToString(data)
		bundle := messages.Bundle{mime: quoted(raw)}
		_, images := display(t, result.Options{}, bundle)
		require.Equal(t, []messages.Image{{MIME: mime, Data: raw, Width: 200, Height: 100}}, images)

		_, images = display(t, result.Options{MaxImageEdge: 50}, bundle)
		require.Len(t, images, 1)
		got := images[0]
		require.Equal(t, []int{50, 25, 200, 100}, []int{got.Width, got.Height, got.OriginalWidth, got.OriginalHeight})
		small, err := base64.StdEncoding.DecodeString(got.Data)
		require.NoError(t, err)
		m, kind, err := image.Decode(bytes.NewReader(small))
		require.NoError(t, err)
		require.Equal(t, mime, "image/"+kind)
		require.Equal(t, image.Pt(50, 25), m.Bounds().Size())
		r, _, _, _ := m.At(25, 12).RGBA()
		require.InDelta(t, 101, int(r>>8), 4, "a pixel is the mean of those that it stands for")

		_, images = display(t, result.Options{MaxImageEdge: -1}, bundle)
		require.Equal(t, raw, images[0].Data)
	}
}

func TestADataFrameIsATable(t *testing.T) {
	t.Parallel()
	const html = "<div>\n<style scoped>\n    .dataframe tbody tr th { vertical-align: top; }\n</style>\n<table border=\"1\" class=\"dataframe\">\n  <thead>\n    <tr style=\"text-align: right;\">\n      <th></th>\n      <th>a</th>\n      <th>b|c</th>\n    </tr>\n  </thead>\n  <tbody>\n    <tr>\n      <th>0</th>\n      <td>1</td>\n      <td>x</td>\n    </tr>\n  </tbody>\n</table>\n</div>"
	got, _ := display(t, result.Options{}, messages.Bundle{"text/html": quoted(html), "text/plain": quoted("   a b|c\n0  1   x")})
	require.Equal(t, "|  | a | b\\|c |\n| --- | --- | --- |\n| 0 | 1 | x |\n", got)
}
