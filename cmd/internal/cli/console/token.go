package console

import "strings"

// Token is the token that a variable holds, "" for none: without the newline at its end that it
// has from a file, since no request can carry one.
func (c *Console) Token(variable string) string { return strings.TrimRight(c.Getenv(variable), "\r\n") }

// CheckToken returns a UsageError when one of the variables holds a token that the header of a
// request cannot carry, so that nobody could show it. It does not quote the token.
func (c *Console) CheckToken(variables ...string) error {
	for _, name := range variables {
		token := c.Token(name)
		control := strings.IndexFunc(token, func(r rune) bool { return r < ' ' || r == 0x7f })
		switch {
		case control >= 0:
			return Usagef("%s holds a control character, %q, after %d characters: no request can carry it; set a token of one line", name, token[control], control)
		case strings.TrimSpace(token) != token:
			return Usagef("%s begins or ends with a blank, which a request loses: leave it out", name)
		}
	}
	return nil
}
