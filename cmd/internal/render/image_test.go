package render

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestProtocolOf(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]Protocol{
		"": NoImages, "TERM=xterm-256color": NoImages, "TERM=xterm-kitty": Kitty, "TERM=xterm-ghostty": Kitty,
		"TERM_PROGRAM=iTerm.app": ITerm, "TERM_PROGRAM=WezTerm": ITerm, "TERM=xterm-kitty TMUX=/s": NoImages, "TERM=tmux-256color KITTY_WINDOW_ID=1": NoImages,
		"TERM=foot": Sixel, "TERM=foot-extra": Sixel, "TERM=mlterm-256color": Sixel, "TERM=foot TMUX=/s": NoImages,
		"TERM=xterm COPPICE_IMAGES=sixel": Sixel, "TERM=xterm-kitty COPPICE_IMAGES=none": NoImages, "TMUX=/s COPPICE_IMAGES=blocks": Blocks, "COPPICE_IMAGES=other TERM=xterm-kitty": Kitty,
	} {
		got := ProtocolOf(func(name string) string {
			for kv := range strings.FieldsSeq(env) {
				if value, ok := strings.CutPrefix(kv, name+"="); ok {
					return value
				}
			}
			return ""
		})
		require.Equal(t, want, got, env)
	}
}

func TestInlineImages(t *testing.T) {
	t.Parallel()
	bundle := messages.Bundle{messages.MIMEPNG: messages.RawJSON(`"AAAA"`), messages.MIMEPlain: messages.RawJSON(`"<Figure>"`)}
	withKitty, iterm := Style{Terminal: true, Images: Kitty}, Style{Terminal: true, Images: ITerm}
	require.Equal(t, []string{"\x1b_Ga=T,f=100,q=2,m=0;AAAA\x1b\\", "▣ image/png, 3 B", "<Figure>"}, Bundle(withKitty, bundle))
	require.Equal(t, []string{"\x1b]1337;File=size=3;inline=1:AAAA\a", "▣ image/png, 3 B", "<Figure>"}, Bundle(iterm, bundle))
	require.Equal(t, []string{"▣ image/png, 3 B", "<Figure>"}, Bundle(Style{Images: Kitty}, bundle), "no terminal")
	require.Empty(t, withKitty.inline(messages.MIMEJPEG, "AAAA"), "what cannot be read is described")
	require.Empty(t, withKitty.inline(messages.MIMEPNG, "AA\x1bAA"), "nothing but base64 reaches the terminal")
	require.Empty(t, iterm.inline(messages.MIMEPNG, "A;A"))
	long := withKitty.inline(messages.MIMEPNG, strings.Repeat("A", 4097))[0]
	require.Equal(t, 2, strings.Count(long, "\x1b_G"))
	require.True(t, strings.HasSuffix(long, "\x1b_Gm=0;A\x1b\\"))
}

// flag is an image of w by h pixels: the left half red, the right half blue; at
// the bottom right a quarter that is transparent.
func flagImage(w, h int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			switch {
			case x < w/2:
				img.Set(x, y, color.RGBA{255, 0, 0, 255})
			case y < h/2:
				img.Set(x, y, color.RGBA{0, 0, 255, 255})
			}
		}
	}
	return img
}

func base64Of(t *testing.T, encode func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, encode(&b))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestKittyGetsPNG(t *testing.T) {
	t.Parallel()
	data := base64Of(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, flagImage(8, 8), nil) })
	shown := Style{Terminal: true, Images: Kitty}.inline(messages.MIMEJPEG, data)
	require.Len(t, shown, 1)
	head, rest, _ := strings.Cut(shown[0], ";")
	require.Equal(t, "\x1b_Ga=T,f=100,q=2,m=0", head)
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(rest, "\x1b\\"))
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 8, 8), img.Bounds())
}

// TestSixel reads the picture back.
func TestSixel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ w, h, wantW, wantH int }{
		"small": {12, 12, 12, 12}, "wide": {1600, 100, 800, 50}, "high": {30, 4800, 3, 480}, "one": {1, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := base64Of(t, func(b *bytes.Buffer) error { return png.Encode(b, flagImage(tc.w, tc.h)) })
			shown := Style{Terminal: true, Images: Sixel}.inline(messages.MIMEPNG, data)
			require.Len(t, shown, 1)
			body, ok := strings.CutPrefix(shown[0], "\x1bP0;1q")
			require.True(t, ok, "%q", shown[0][:20])
			img := sixelsOf(t, body)
			require.Equal(t, image.Rect(0, 0, tc.wantW, tc.wantH), img.Bounds())
			if tc.w == tc.wantW { // nothing is lost
				for i := range tc.w * tc.h {
					want := color.RGBA{255, 255, 255, 255}
					if c, ok := flagImage(tc.w, tc.h).At(i%tc.w, i/tc.w).(color.RGBA); ok && c.A > 0 {
						want = c
					}
					require.Equal(t, want, img.RGBAAt(i%tc.w, i/tc.w))
				}
			}
			if tc.wantW < 3 {
				return
			}
			red, _, blue, _ := img.At(0, 0).RGBA()
			require.Greater(t, red, blue)
			red, _, blue, _ = img.At(tc.wantW-1, 0).RGBA()
			require.Greater(t, blue, red)
			_, green, _, _ := img.At(tc.wantW-1, tc.wantH-1).RGBA()
			require.Greater(t, green, uint32(0xf000), "what is transparent is white")
		})
	}
	many := image.NewRGBA(image.Rect(0, 0, 64, 64)) // more colours than a terminal has
	for i := range 64 * 64 {
		many.Set(i%64, i/64, color.RGBA{uint8(4 * (i % 64)), uint8(4 * (i / 64)), 128, 255})
	}
	data := base64Of(t, func(b *bytes.Buffer) error { return png.Encode(b, many) })
	shown := Style{Terminal: true, Images: Sixel}.inline(messages.MIMEPNG, data)
	require.Len(t, shown, 1)
	img := sixelsOf(t, strings.TrimPrefix(shown[0], "\x1bP0;1q"))
	for i := range 64 * 64 { // each pixel has a colour near its own
		got, want := img.RGBAAt(i%64, i/64), many.RGBAAt(i%64, i/64)
		require.InDelta(t, want.R, got.R, 16)
		require.InDelta(t, want.G, got.G, 16)
		require.InDelta(t, want.B, got.B, 16)
	}
	require.Empty(t, Style{Terminal: true, Images: Sixel}.inline(messages.MIMEPNG, "AAAA"))
	require.Empty(t, Style{Images: Sixel}.inline(messages.MIMEPNG, "AAAA"))
}

// sixelsOf reads what a terminal reads: RGB colours in percent, repeats, returns
// and new bands.
func sixelsOf(t *testing.T, s string) *image.RGBA {
	t.Helper()
	number := func(after int) (int, int) {
		n := 0
		for ; s[after] >= '0' && s[after] <= '9'; after++ {
			n = 10*n + int(s[after]-'0')
		}
		return n, after
	}
	numbers := func(after int) (list []int, end int) {
		for {
			n, end := number(after)
			if list = append(list, n); s[end] != ';' {
				return list, end
			}
			after = end + 1
		}
	}
	img := image.NewRGBA(image.Rectangle{})
	colours := map[int]color.RGBA{}
	x, top, repeat, colour := 0, 0, 1, 0
	for at := 0; ; {
		switch c := s[at]; {
		case c == '"':
			list, end := numbers(at + 1)
			img, at = image.NewRGBA(image.Rect(0, 0, list[2], list[3])), end
		case c == '#':
			list, end := numbers(at + 1)
			if colour, at = list[0], end; len(list) == 5 {
				require.Equal(t, 2, list[1])
				colours[colour] = color.RGBA{uint8(list[2] * 255 / 100), uint8(list[3] * 255 / 100), uint8(list[4] * 255 / 100), 255}
			}
		case c == '!':
			repeat, at = number(at + 1)
		case c == '$':
			x, at = 0, at+1
		case c == '-':
			x, top, at = 0, top+6, at+1
		case c == '\x1b':
			require.Equal(t, "\x1b\\", s[at:])
			return img
		default:
			require.True(t, c >= '?' && c <= '~', "%q", c)
			for range repeat {
				for bit := range 6 {
					if (c-'?')>>bit&1 == 1 {
						require.True(t, image.Pt(x, top+bit).In(img.Bounds()))
						img.SetRGBA(x, top+bit, colours[colour])
					}
				}
				x++
			}
			repeat, at = 1, at+1
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	data := base64Of(t, func(b *bytes.Buffer) error { return png.Encode(b, flagImage(4, 3)) })
	s := Style{Colour: true, Images: Blocks}
	const red, blue, white = "255;0;0", "0;0;255", "255;255;255"
	require.Equal(t, []string{
		"\x1b[38;2;" + red + ";48;2;" + red + "m▀▀\x1b[38;2;" + blue + ";48;2;" + white + "m▀▀\x1b[0m",
		"\x1b[38;2;" + red + "m▀▀\x1b[38;2;" + white + "m▀▀\x1b[0m",
	}, s.inline(messages.MIMEPNG, data))
	require.Empty(t, Style{Images: Blocks}.inline(messages.MIMEPNG, data), "without colour nothing would be seen")

	large := base64Of(t, func(b *bytes.Buffer) error { return png.Encode(b, flagImage(640, 480)) })
	for _, width := range []int{0, 10, 40, 200} {
		lines := Style{Colour: true, Images: Blocks, Width: width}.inline(messages.MIMEPNG, large)
		require.NotEmpty(t, lines)
		require.LessOrEqual(t, len(lines), blockRows)
		for _, l := range lines {
			require.LessOrEqual(t, ansi.StringWidth(l), blockColumns)
			if width > 0 {
				require.LessOrEqual(t, ansi.StringWidth(l), width)
			}
		}
	}
}

// TestImagesThatAreNone: hostile headers cost neither memory nor a panic.
func TestImagesThatAreNone(t *testing.T) {
	t.Parallel()
	bomb := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x0f\xff\xff\x00\x0f\xff\xff\x08\x06\x00\x00\x00")
	for _, data := range []string{"", "AAAA", base64.StdEncoding.EncodeToString(bomb)} {
		require.Nil(t, decodeImage(data))
		require.Empty(t, pngOf(data))
		require.Empty(t, sixelImage(data))
		require.Empty(t, blocks(data, 10))
	}
}
