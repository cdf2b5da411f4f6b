package jupyter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Remote is a server that somebody else runs, and what opens it.
type Remote struct {
	URL   string
	Token string // "": none
}

// String names the server without its token.
func (r Remote) String() string { return r.URL }

// GoString is String, so that no format shows the token.
func (r Remote) GoString() string { return r.URL }

// TokensError says that the tokens do not fit the addresses.
type TokensError struct{ URLs, Tokens int }

// Error says what would fit.
func (e *TokensError) Error() string {
	return fmt.Sprintf("there are %d addresses of servers and %d tokens; set one token that opens all, or one for each, in the same order, with commas between them", e.URLs, e.Tokens)
}

// ParseRemotes reads the addresses of external servers and their tokens. Addresses
// have commas or white space between them. The token of one server is taken as it
// is. Several servers have one token that opens all, or one for each in the order
// of the addresses, with commas between them; an empty place is a server without
// one. A token is shown to its own server alone. An address that comes twice counts
// once, with its first token.
//
// The error is a [*TokensError] or about an address; it shows no credentials.
func ParseRemotes(urls, tokens string) ([]Remote, error) {
	all := strings.FieldsFunc(urls, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	each := []string{tokens}
	if len(all) > 1 && strings.Contains(tokens, ",") {
		each = strings.Split(tokens, ",")
	}
	var remotes []Remote
	for i, one := range all {
		client, err := NewClient(Options{URL: one})
		if err != nil {
			return nil, err
		}
		r := Remote{URL: client.URL(), Token: each[0]}
		if len(each) > 1 {
			if len(each) != len(all) {
				return nil, &TokensError{URLs: len(all), Tokens: len(each)}
			}
			r.Token = strings.TrimSpace(each[i])
		}
		if !slices.ContainsFunc(remotes, func(other Remote) bool { return other.URL == r.URL }) {
			remotes = append(remotes, r)
		}
	}
	return remotes, nil
}
