package result

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/jpeg"
	"image/png"
	"strings"

	"github.com/coppice-run/coppice/internal/scale"
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
	var b bytes.Buffer
	small := scale.Within(full, edge, edge, nil)
	if kind == "jpeg" {
		err = jpeg.Encode(&b, small, &jpeg.Options{Quality: jpegQuality})
	} else {
		err = png.Encode(&b, small)
	}
	if err != nil {
		return in
	}
	in.Data = base64.StdEncoding.EncodeToString(b.Bytes())
	in.OriginalWidth, in.OriginalHeight, in.Width, in.Height = c.Width, c.Height, small.Rect.Dx(), small.Rect.Dy()
	return in
}
