package result

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

const (
	// DefaultImageEdge is how many pixels an image may have on its longer side.
	DefaultImageEdge = 1568
	// maxPixels is the largest image that is made smaller: its pixels take 4
	// bytes each, twice, while that is done.
	maxPixels   = 40 << 20
	jpegQuality = 85
)

// fitImage returns an image with its dimensions, made smaller when its longer
// side is over edge. What cannot be decoded stays as it is, without dimensions.
func fitImage(in messages.Image, edge int) messages.Image {
	c, kind, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(in.Data)))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return in
	}
	in.Width, in.Height = c.Width, c.Height
	if edge < 0 || max(c.Width, c.Height) <= edge || c.Width > maxPixels/c.Height {
		return in
	}
	full, _, err := image.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(in.Data)))
	if err != nil {
		return in
	}
	w, h := edge, max(1, c.Height*edge/c.Width)
	if c.Height > c.Width {
		w, h = max(1, c.Width*edge/c.Height), edge
	}
	var b bytes.Buffer
	small := shrink(full, w, h)
	if kind == "jpeg" {
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: jpegQuality})
	} else {
		err = png.Encode(&b, small)
	}
	if err != nil {
		return in
	}
	in.Data = base64.StdEncoding.EncodeToString(b.Bytes())
	in.OriginalWidth, in.OriginalHeight, in.Width, in.Height = c.Width, c.Height, w, h
	return in
}

// shrink returns an image of w by h pixels, each the mean of those of src that
// it stands for.
func shrink(src image.Image, w, h int) *image.RGBA {
	box := src.Bounds()
	full := image.NewRGBA(image.Rect(0, 0, box.Dx(), box.Dy()))
	draw.Draw(full, full.Bounds(), src, box.Min, draw.Src)
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		top, bottom := y*box.Dy()/h, (y+1)*box.Dy()/h
		for x := range w {
			left, right := x*box.Dx()/w, (x+1)*box.Dx()/w
			var sum [4]uint64
			for sy := top; sy < bottom; sy++ {
				row := full.Pix[full.PixOffset(left, sy):full.PixOffset(right, sy)]
				for i, v := range row {
					sum[i&3] += uint64(v)
				}
			}
			n := uint64((bottom - top) * (right - left))
			p := out.Pix[out.PixOffset(x, y):]
			for i, s := range sum {
				p[i] = uint8((s + n/2) / n)
			}
		}
	}
	return out
}
