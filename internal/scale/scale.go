// Package scale makes images smaller.
//
// Each pixel of a smaller image is the mean of those that it stands for, in equal
// parts: lines of a plot become fainter and none is lost. The same image gives the
// same pixels. Time and memory are those of the pixels of the image, 4 bytes each.
//
// Any goroutine may call [Within].
package scale

import (
	"image"
	"image/draw"
)

// Within returns img, made smaller to fit into w by h pixels (at least 1 each)
// when it is larger, in its proportions; a side has one pixel at least. What is
// transparent in it shows ground; nil leaves it transparent. The bounds of the
// result start at 0, 0, and its pixels are its own. An img without pixels gives an
// image without pixels.
func Within(img image.Image, w, h int, ground image.Image) *image.RGBA {
	box := img.Bounds()
	full := image.NewRGBA(image.Rect(0, 0, box.Dx(), box.Dy()))
	if ground != nil {
		draw.Draw(full, full.Bounds(), ground, image.Point{}, draw.Src)
	}
	draw.Draw(full, full.Bounds(), img, box.Min, draw.Over)
	if box.Empty() {
		return full
	}
	w, h = fit(box.Size(), w, h)
	if w == box.Dx() && h == box.Dy() {
		return full
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			mean(out.Pix[out.PixOffset(x, y):], full, image.Rect(x*box.Dx()/w, y*box.Dy()/h, (x+1)*box.Dx()/w, (y+1)*box.Dy()/h))
		}
	}
	return out
}

// fit returns how large an image becomes.
func fit(size image.Point, w, h int) (width, height int) {
	w, h = min(max(w, 1), size.X), min(max(h, 1), size.Y)
	if size.X*h > size.Y*w {
		return w, max(1, w*size.Y/size.X)
	}
	return max(1, h*size.X/size.Y), h
}

// mean puts the mean of the pixels of a part of img, which has some, into pixel.
func mean(pixel []uint8, img *image.RGBA, part image.Rectangle) {
	var sum [4]uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for i, v := range img.Pix[img.PixOffset(part.Min.X, y):img.PixOffset(part.Max.X, y)] {
			sum[i&3] += uint64(v)
		}
	}
	n := uint64(part.Dx() * part.Dy()) //nolint:gosec // not negative
	for i, s := range sum {
		pixel[i] = uint8((s + n/2) / n) //nolint:gosec // a mean of bytes
	}
}
