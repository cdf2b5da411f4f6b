package scale_test

import (
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/scale"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ size, within, want image.Point }{
		"fits":        {image.Pt(3, 4), image.Pt(10, 10), image.Pt(3, 4)},
		"as large":    {image.Pt(10, 4), image.Pt(10, 4), image.Pt(10, 4)},
		"wide":        {image.Pt(1600, 100), image.Pt(800, 480), image.Pt(800, 50)},
		"high":        {image.Pt(30, 4800), image.Pt(800, 480), image.Pt(3, 480)},
		"one line":    {image.Pt(4000, 1), image.Pt(100, 100), image.Pt(100, 1)},
		"square":      {image.Pt(9, 9), image.Pt(4, 3), image.Pt(3, 3)},
		"no room":     {image.Pt(9, 9), image.Pt(0, -3), image.Pt(1, 1)},
		"no pixels":   {image.Pt(0, 9), image.Pt(4, 3), image.Pt(0, 9)},
		"no room yet": {image.Pt(2, 9), image.Pt(1, 9), image.Pt(1, 4)},
	} {
		img := image.NewGray(image.Rectangle{Min: image.Pt(-2, 5), Max: image.Pt(-2, 5).Add(tt.size)})
		require.Equal(t, image.Rectangle{Max: tt.want}, scale.Within(img, tt.within.X, tt.within.Y, nil).Bounds(), name)
	}
}

func TestMean(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(7, 7, 11, 9))
	for i, c := range []color.NRGBA{{0, 0, 0, 255}, {100, 0, 0, 255}, {0, 50, 0, 255}, {100, 50, 255, 255}} {
		img.SetNRGBA(7+i%2, 7+i/2, c)
	}
	small := scale.Within(img, 2, 1, nil)
	require.Equal(t, color.RGBA{50, 25, 64, 255}, small.RGBAAt(0, 0))
	require.Equal(t, color.RGBA{}, small.RGBAAt(1, 0))
	require.Equal(t, color.RGBA{255, 255, 255, 255}, scale.Within(img, 2, 1, image.White).RGBAAt(1, 0))
	same := scale.Within(img, 9, 9, nil)
	same.SetRGBA(0, 0, color.RGBA{1, 2, 3, 255})
	require.Equal(t, color.NRGBA{0, 0, 0, 255}, img.NRGBAAt(7, 7), "the pixels are not those of the image")
}

// An image of one colour stays one, whatever its size, and a smaller image is
// neither lighter nor darker than what it stands for.
func TestBrightness(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12)
		w, h, times := n.Draw(t, "w"), n.Draw(t, "h"), n.Draw(t, "times")
		img := image.NewGray(image.Rect(0, 0, w*times, h*times))
		want := 0
		for i := range img.Pix {
			img.Pix[i] = rapid.Byte().Draw(t, "pixel")
			want += int(img.Pix[i])
		}
		small := scale.Within(img, w, h, nil)
		require.Equal(t, image.Rect(0, 0, w, h), small.Bounds())
		got := 0
		for i := 0; i < len(small.Pix); i += 4 {
			got += int(small.Pix[i])
		}
		require.InDelta(t, float64(want)/float64(times*times), got, float64(w*h)/2+1)

		for i := range img.Pix {
			img.Pix[i] = img.Pix[0]
		}
		small = scale.Within(img, n.Draw(t, "W"), n.Draw(t, "H"), nil)
		for i, v := range small.Pix {
			if i%4 < 3 {
				require.Equal(t, img.Pix[0], v)
			}
		}
	})
}
