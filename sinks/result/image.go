package result

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // what readImage reads
	"image/jpeg"
	"image/png"

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

// imageTypes are those that models take.
var imageTypes = []string{messages.MIMEPNG, messages.MIMEJPEG, messages.MIMEGIF, messages.MIMEWebP}

var (
	errNoImage   = errors.New("its data is no image of a known type")
	errHalfImage = errors.New("its data ends in the middle of the image")
)

// readImage returns the image that data is, without Data: its type as the data say, and
// its dimensions. A provider refuses the whole request for one image that it cannot
// read, or that has the type of another.
func readImage(data []byte) (messages.Image, error) {
	if w, h, whole, ok := webP(data); ok {
		if !whole {
			return messages.Image{}, errHalfImage
		}
		return messages.Image{MIME: messages.MIMEWebP, Width: w, Height: h}, nil
	}
	c, kind, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case errors.Is(err, image.ErrFormat):
		return messages.Image{}, errNoImage
	case err != nil:
		return messages.Image{}, fmt.Errorf("its data cannot be read: %w", err)
	case c.Width <= 0 || c.Height <= 0:
		return messages.Image{}, errNoImage
	case !ends(data, kind):
		return messages.Image{}, errHalfImage
	}
	return messages.Image{MIME: "image/" + kind, Width: c.Width, Height: c.Height}, nil
}

// ends reports whether an image has an end, without decoding it.
func ends(data []byte, kind string) bool {
	switch kind {
	case "png":
		const signature, frame = 8, 12 // length, type and sum of a chunk
		for data = data[min(signature, len(data)):]; len(data) >= frame; {
			n := int64(binary.BigEndian.Uint32(data)) + frame
			if string(data[4:8]) == "IEND" {
				return true
			}
			data = data[min(n, int64(len(data))):]
		}
		return false
	case "jpeg":
		return bytes.Contains(data[2:], []byte{0xff, 0xd9})
	default: // gif
		return bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte{0x3b})
	}
}

// webP reads the beginning of a WebP, which the standard library does not know; false
// when data is none. whole says that it is there to its end.
func webP(data []byte) (w, h int, whole, ok bool) {
	const least = 30
	if len(data) < least || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0, false, false
	}
	whole = int64(binary.LittleEndian.Uint32(data[4:]))+8 <= int64(len(data))
	switch b := data[20:]; string(data[12:16]) {
	case "VP8X":
		return 1 + int(b[4]) + int(b[5])<<8 + int(b[6])<<16, 1 + int(b[7]) + int(b[8])<<8 + int(b[9])<<16, whole, true
	case "VP8L":
		bits := binary.LittleEndian.Uint32(b[1:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff), whole, b[0] == 0x2f
	case "VP8 ":
		w, h = int(binary.LittleEndian.Uint16(b[6:])&0x3fff), int(binary.LittleEndian.Uint16(b[8:])&0x3fff)
		return w, h, whole, bytes.Equal(b[3:6], []byte{0x9d, 0x01, 0x2a}) && w > 0 && h > 0
	}
	return 0, 0, false, false
}

// fitImage returns an image with its data, made smaller when its longer side is over
// edge. A WebP stays as it is, and of a GIF the first picture is left then.
func fitImage(in messages.Image, data []byte, edge int) messages.Image {
	in.Data = base64.StdEncoding.EncodeToString(data)
	if edge < 0 || max(in.Width, in.Height) <= edge || in.Width > maxPixels/in.Height {
		return in
	}
	full, kind, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return in
	}
	var b bytes.Buffer
	small, mime := scale.Within(full, edge, edge, nil), messages.MIMEPNG
	if kind == "jpeg" {
		mime, err = messages.MIMEJPEG, jpeg.Encode(&b, small, &jpeg.Options{Quality: jpegQuality})
	} else {
		err = png.Encode(&b, small)
	}
	if err != nil {
		return in
	}
	return messages.Image{
		MIME: mime, Data: base64.StdEncoding.EncodeToString(b.Bytes()), Width: small.Rect.Dx(), Height: small.Rect.Dy(),
		OriginalWidth: in.Width, OriginalHeight: in.Height,
	}
}
