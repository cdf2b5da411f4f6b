package render

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/jpeg" // decoders for image.Decode
	"image/png"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/sixel"

	"github.com/coppice-run/coppice/internal/scale"
)

const (
	// maxPixels is the largest image that is decoded: its pixels take 4 bytes
	// each.
	maxPixels = 20 << 20
	// sixelWidth and sixelHeight bound a sixel image: terminals do not make them
	// smaller.
	sixelWidth, sixelHeight = 800, 480
	// blockColumns and blockRows bound an image that is drawn with characters.
	blockColumns, blockRows = 64, 16
)

// decodeImage reads an image in base64, nil when it cannot be read or is too
// large.
func decodeImage(data string) image.Image {
	c, _, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return nil
	}
	img, _, err := image.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		return nil
	}
	return img
}

// sixelImage draws an image in base64 for a terminal with sixels, "" when it
// cannot be read. What is transparent becomes white, as plots expect.
func sixelImage(data string) string {
	img := decodeImage(data)
	if img == nil {
		return ""
	}
	var b bytes.Buffer
	if (&sixel.Encoder{}).Encode(&b, scale.Within(img, sixelWidth, sixelHeight, image.White)) != nil {
		return ""
	}
	return ansi.SixelGraphics(0, 1, 0, b.Bytes())
}

// pngOf makes an image in base64 one of PNG, "" when it cannot be read.
func pngOf(data string) string {
	img := decodeImage(data)
	if img == nil {
		return ""
	}
	var b bytes.Buffer
	if png.Encode(&b, img) != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// blocks draws an image in base64 with half blocks, two pixels in each, no wider
// than width (0: no limit); nil when it cannot be read.
func blocks(data string, width int) []string {
	img := decodeImage(data)
	if img == nil {
		return nil
	}
	columns := blockColumns
	if width > 0 {
		columns = min(columns, width)
	}
	small := scale.Within(img, columns, 2*blockRows, image.White)
	var lines []string
	for y := 0; y < small.Bounds().Dy(); y += 2 {
		var b strings.Builder
		last := ""
		for x := range small.Bounds().Dx() {
			top := small.RGBAAt(x, y)
			colour := fmt.Sprintf("\x1b[38;2;%d;%d;%dm", top.R, top.G, top.B)
			if y+1 < small.Bounds().Dy() {
				low := small.RGBAAt(x, y+1)
				colour = fmt.Sprintf("\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm", top.R, top.G, top.B, low.R, low.G, low.B)
			}
			if colour != last {
				b.WriteString(colour)
				last = colour
			}
			b.WriteString("▀")
		}
		lines = append(lines, b.String()+"\x1b[0m")
	}
	return lines
}
