package console

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToken: what a file leaves at the end of a token is no part of it, and what no request could
// carry is refused, without the token itself.
func TestToken(t *testing.T) {
	for text, want := range map[string]struct{ token, problem string }{
		"":           {"", ""},
		"secret":     {"secret", ""},
		"two words":  {"two words", ""},
		"secret\n":   {"secret", ""},
		"secret\r\n": {"secret", ""},
		"sec\nret":   {"sec\nret", `COPPICE_TOKEN holds a control character, '\n', after 3 characters`},
		"secret\x00": {"secret\x00", "control character"},
		"\tsecret":   {"\tsecret", "control character"},
		"secret\x7f": {"secret\x7f", "control character"},
		" secret":    {" secret", "begins or ends with a blank"},
		"secret \n":  {"secret ", "begins or ends with a blank"},
	} {
		c := &Console{Env: []string{"COPPICE_TOKEN=" + text}}
		require.Equal(t, want.token, c.Token("COPPICE_TOKEN"), "%q", text)
		err := c.CheckToken("COPPICE_TOKEN", "COPPICE_OTHER")
		if want.problem == "" {
			require.NoError(t, err, "%q", text)
			continue
		}
		require.ErrorAs(t, err, new(UsageError), "%q", text)
		require.ErrorContains(t, err, want.problem)
		require.NotContains(t, err.Error(), "secret")
	}
}
