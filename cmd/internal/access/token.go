package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

const (
	// format is the version of the file.
	format = 1
	// maxFile bounds the file, in bytes, and maxTokens what is in it.
	maxFile   = 4 << 20
	maxTokens = 10_000
	// prefix begins every token, so that one that lies about is known for what it is.
	prefix = "coppice_"
)

// ErrMalformed is matched by the error for a tokens file that cannot be read.
var ErrMalformed = errors.New("it is no tokens file")

var (
	ids     = regexp.MustCompile(`^[a-z0-9]{4,32}$`)
	tenants = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)
	hashes  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Token is what the file has of a token: everything but the token.
type Token struct {
	ID     string           `json:"id"`
	Tenant string           `json:"tenant"`
	Scope  httpserver.Scope `json:"scope"`
	// Hash is the SHA-256 of the token, in hexadecimal digits.
	Hash    string    `json:"sha256"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	// Revoked is when it was revoked; zero: it was not.
	Revoked time.Time `json:"revoked,omitzero"`
}

// Opens reports whether the token opens anything at an instant.
func (t Token) Opens(now time.Time) bool { return t.Revoked.IsZero() && now.Before(t.Expires) }

// is reports whether a text is the token, in a time that tells nothing.
func (t Token) is(hash [sha256.Size]byte) bool {
	var own [sha256.Size]byte
	n, err := hex.Decode(own[:], []byte(t.Hash))
	return subtle.ConstantTimeCompare(own[:], hash[:]) == 1 && n == len(own) && err == nil
}

// CheckTenant refuses what cannot be the name of a tenant.
func CheckTenant(name string) error {
	if !tenants.MatchString(name) {
		return fmt.Errorf("%.60q cannot be the name of a tenant: use 1 to 40 small letters, digits and -, without - at an end", name)
	}
	return nil
}

// check refuses a token that no program of ours has written.
func (t Token) check() error {
	switch {
	case !ids.MatchString(t.ID):
		return fmt.Errorf("%.40q is no id of a token", t.ID)
	case !slices.Contains(httpserver.Scopes(), t.Scope):
		return fmt.Errorf("the token %s has no scope that there is: %.40q", t.ID, t.Scope)
	case !hashes.MatchString(t.Hash):
		return fmt.Errorf("the token %s has no SHA-256", t.ID)
	case t.Created.IsZero() || t.Expires.IsZero():
		return fmt.Errorf("the token %s does not say when it was made, or when it expires", t.ID)
	}
	if err := CheckTenant(t.Tenant); err != nil {
		return fmt.Errorf("the token %s: %w", t.ID, err)
	}
	return nil
}

// content is the file.
type content struct {
	Format int     `json:"format"`
	Tokens []Token `json:"tokens"`
}

// parse reads a file. The error matches ErrMalformed.
func parse(data []byte) ([]Token, error) {
	var c content
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows its value", ErrMalformed)
	}
	if c.Format != format {
		return nil, fmt.Errorf("%w of this version of coppice: its format is %d, not %d", ErrMalformed, c.Format, format)
	}
	if len(c.Tokens) > maxTokens {
		return nil, fmt.Errorf("%w: it has %d tokens, more than %d", ErrMalformed, len(c.Tokens), maxTokens)
	}
	seen := make(map[string]bool, 2*len(c.Tokens))
	for i, t := range c.Tokens {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if seen[t.ID] || seen[t.Hash] {
			return nil, fmt.Errorf("%w: the token %s is there twice", ErrMalformed, t.ID)
		}
		seen[t.ID], seen[t.Hash] = true, true
		for _, at := range []*time.Time{&c.Tokens[i].Created, &c.Tokens[i].Expires, &c.Tokens[i].Revoked} {
			*at = at.UTC() // the same token is the same value, however it was written
		}
	}
	return c.Tokens, nil
}

// encode writes a file.
func encode(list []Token) ([]byte, error) {
	data, err := json.MarshalIndent(content{format, list}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the tokens: %w", err)
	}
	return append(data, '\n'), nil
}

// newToken makes a token and what the file has of it.
func newToken(tenant string, scope httpserver.Scope, now, expires time.Time) (string, Token) {
	text := prefix + rand.Text() // 128 bits and more
	sum := sha256.Sum256([]byte(text))
	return text, Token{
		ID: strings.ToLower(rand.Text()[:10]), Tenant: tenant, Scope: scope, Hash: hex.EncodeToString(sum[:]),
		Created: now.UTC().Truncate(time.Second), Expires: expires.UTC().Truncate(time.Second),
	}
}
