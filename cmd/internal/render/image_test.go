package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
)

func TestProtocolOf(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]Protocol{
		"": NoImages, "TERM=xterm-256color": NoImages, "TERM=xterm-kitty": Kitty, "TERM=xterm-ghostty": Kitty,
		"TERM_PROGRAM=iTerm.app": ITerm, "TERM_PROGRAM=WezTerm": ITerm, "TERM=xterm-kitty TMUX=/s": NoImages, "TERM=tmux-256color KITTY_WINDOW_ID=1": NoImages,
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
	kitty, iterm := Style{Terminal: true, Images: Kitty}, Style{Terminal: true, Images: ITerm}
	require.Equal(t, []string{"\x1b_Ga=T,f=100,q=2,m=0;AAAA\x1b\\", "▣ image/png, 3 B", "<Figure>"}, Bundle(kitty, bundle))
	require.Equal(t, []string{"\x1b]1337;File=inline=1;size=3:AAAA\a", "▣ image/png, 3 B", "<Figure>"}, Bundle(iterm, bundle))
	require.Equal(t, []string{"▣ image/png, 3 B", "<Figure>"}, Bundle(Style{Images: Kitty}, bundle), "no terminal")
	require.Empty(t, kitty.inline(messages.MIMEJPEG, "AAAA"), "kitty takes PNG alone")
	require.Empty(t, kitty.inline(messages.MIMEPNG, "AA\x1bAA"), "nothing but base64 reaches the terminal")
	require.Empty(t, iterm.inline(messages.MIMEPNG, "A;A"))
	long := kitty.inline(messages.MIMEPNG, strings.Repeat("A", 4097))
	require.Equal(t, 2, strings.Count(long, "\x1b_G"))
	require.True(t, strings.HasSuffix(long, "\x1b_Gm=0;A\x1b\\"))
}
