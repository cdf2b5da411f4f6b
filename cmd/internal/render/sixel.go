package render

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"slices"
	"strings"
)

// sixelColours is how many colours a sixel terminal surely has.
const sixelColours = 256

// sixels encodes an image as a DEC sixel sequence: bands of six rows, and in
// each band one pass for every colour. Equal images give equal text.
func sixels(img *image.RGBA) string {
	p := paletted(img)
	w, h := p.Bounds().Dx(), p.Bounds().Dy()
	var b strings.Builder
	fmt.Fprintf(&b, "\x1bP0;1q\"1;1;%d;%d", w, h)
	for i, c := range p.Palette {
		red, green, blue, _ := c.RGBA()
		percent := func(v uint32) uint32 { return (v*100 + 0x7fff) / 0xffff }
		fmt.Fprintf(&b, "#%d;2;%d;%d;%d", i, percent(red), percent(green), percent(blue))
	}
	for top := 0; top < h; top += 6 {
		sixelBand(&b, p, top)
		b.WriteByte('-')
	}
	return b.String() + "\x1b\\"
}

// sixelBand writes the six rows from top on.
func sixelBand(b *strings.Builder, p *image.Paletted, top int) {
	w := p.Bounds().Dx()
	bits := map[uint8][]byte{}
	for dy := range min(6, p.Bounds().Dy()-top) {
		for x, c := range p.Pix[p.PixOffset(0, top+dy):p.PixOffset(w, top+dy)] {
			if bits[c] == nil {
				bits[c] = make([]byte, w)
			}
			bits[c][x] |= 1 << dy
		}
	}
	first := true
	for c := range len(p.Palette) {
		row, used := bits[uint8(c)]
		if !used {
			continue
		}
		if !first {
			b.WriteByte('$')
		}
		first = false
		fmt.Fprintf(b, "#%d", c)
		for x := 0; x < w; {
			n := 1
			for x+n < w && row[x+n] == row[x] {
				n++
			}
			switch {
			case x+n == w && row[x] == 0: // nothing more of this colour
			case n > 3:
				fmt.Fprintf(b, "!%d%c", n, '?'+row[x])
			default:
				b.WriteString(strings.Repeat(string(rune('?'+row[x])), n))
			}
			x += n
		}
	}
}

// paletted returns an image with the colours that it has, or, when these are too
// many, dithered with a fixed set.
func paletted(img *image.RGBA) *image.Paletted {
	seen := map[color.RGBA]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if seen[img.RGBAAt(x, y)] = true; len(seen) > sixelColours {
				out := image.NewPaletted(img.Bounds(), palette.Plan9)
				draw.FloydSteinberg.Draw(out, out.Bounds(), img, image.Point{})
				return out
			}
		}
	}
	own := make(color.Palette, 0, len(seen))
	for c := range seen {
		own = append(own, c)
	}
	slices.SortFunc(own, func(a, b color.Color) int {
		x, y := a.(color.RGBA), b.(color.RGBA)
		return cmp.Or(cmp.Compare(x.R, y.R), cmp.Compare(x.G, y.G), cmp.Compare(x.B, y.B), cmp.Compare(x.A, y.A))
	})
	at := map[color.RGBA]uint8{}
	for i, c := range own {
		at[c.(color.RGBA)] = uint8(i)
	}
	out := image.NewPaletted(img.Bounds(), own)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			out.Pix[out.PixOffset(x, y)] = at[img.RGBAAt(x, y)]
		}
	}
	return out
}
