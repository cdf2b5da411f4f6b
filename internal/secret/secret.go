package secret

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parts make a name that of a secret wherever they stand in it; words do when a
// part of the name between separators is one of them.
var (
	parts = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "APIKEY"}
	words = set("PASS AUTH AUTHORIZATION BEARER PWD PSWD PASSWRD PASSCODE PIN JWT OAUTH PAT OTP TOTP DSN CRED CREDS PRIVATE SIGNATURE SESSIONID")
)

func set(names string) map[string]bool {
	m := make(map[string]bool)
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// Name reports whether the name of a variable, a setting or a query parameter says
// that its value is secret: GITHUB_PAT, STRIPE_KEY, DB_PWD2, apiKey,
// x-auth-signature. Case does not matter but as a border between words.
func Name(name string) bool {
	upper := strings.ToUpper(name)
	for _, p := range parts {
		if strings.Contains(upper, p) {
			return true
		}
	}
	for _, word := range split(name) {
		word = strings.TrimRight(strings.ToUpper(word), "0123456789")
		if words[word] || strings.HasSuffix(strings.TrimSuffix(word, "S"), "KEY") {
			return true
		}
	}
	return false
}

// Variable reports whether an environment variable is a secret, by its name or by its
// value. The working directory, which shells keep in PWD, is not one.
func Variable(name, value string) bool {
	return name != "PWD" && name != "OLDPWD" && (Name(name) || Value(value))
}

// split returns the words of a name: between separators, where a small letter is
// followed by a capital one (dbPwd), and before the last capital letter of several
// (DBPwd).
func split(name string) []string {
	var all []string
	begin, last := 0, rune(0)
	cut := func(end int) {
		if end > begin {
			all = append(all, name[begin:end])
		}
	}
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			cut(i)
			begin = i + len(string(r))
		case unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsUpper(last) && startsSmall(name[i+utf8.RuneLen(r):])):
			cut(i)
			begin = i
		}
		last = r
	}
	cut(len(name))
	return all
}

func startsSmall(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

// head is a name with the sign before its value, in a connection string, a query,
// JSON, a command line or code; assigned is the value.
var (
	head     = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.-]*)["'\]]*[ \t]*[=:][ \t]*`)
	assigned = regexp.MustCompile(`^(?:"[^"\n]*"|'[^'\n]*'|[^\s"',;&)}]+)`)
)

// webhooks are addresses that open what they name without anything else.
var webhooks = regexp.MustCompile(`(?i)://(?:hooks\.|[^/\s]*/(?:api/)?webhooks?/)`)

// shapes are secrets that give themselves away: keys of well-known services, JSON
// web tokens, what follows "Bearer", passwords in addresses, private keys.
var shapes = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bAKIA[A-Z0-9]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*|\bAIza[A-Za-z0-9_-]{30,}`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(://[^/\s:@]*:)[^/\s@]+(@)`),
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`),
}

// Value reports whether a value carries a secret whatever its name is: an address
// with a password, a token or a webhook in it, a connection string or JSON that
// names a password, a key of a well-known service.
func Value(value string) bool {
	for _, s := range shapes {
		if s.MatchString(value) {
			return true
		}
	}
	for _, m := range head.FindAllStringSubmatchIndex(value, -1) {
		if Name(value[m[2]:m[3]]) && assigned.MatchString(value[m[1]:]) {
			return true
		}
	}
	return webhooks.MatchString(value)
}

// Mark stands where a secret was masked.
const Mark = "***"

// Mask returns text with everything masked in it that gives itself away as a
// secret: the shapes that [Value] knows, and what is assigned to a name that
// [Name] knows. A name that is "key" alone stays, since sort(key=f) is no secret.
func Mask(text string) string {
	for _, s := range shapes {
		text = s.ReplaceAllString(text, "${1}"+Mark+"${2}")
	}
	var b strings.Builder
	done := 0
	for _, m := range head.FindAllStringSubmatchIndex(text, -1) {
		name, end := text[m[2]:m[3]], m[1]
		if end < done || strings.EqualFold(name, "key") || strings.EqualFold(name, "keys") || !Name(name) {
			continue
		}
		if at := assigned.FindStringIndex(text[end:]); at != nil {
			b.WriteString(text[done:end])
			b.WriteString(Mark)
			done = end + at[1]
		}
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// Masker returns a function that replaces each of the values of at least so many
// bytes by [Mark], the longest first, so that a value which contains another goes
// whole. Shorter ones stand in any text.
func Masker(values []string, least int) func(string) string {
	var pairs []string
	for _, v := range longestFirst(values) {
		if len(v) >= max(least, 1) {
			pairs = append(pairs, v, Mark)
		}
	}
	if pairs == nil {
		return func(text string) string { return text }
	}
	return strings.NewReplacer(pairs...).Replace
}

func longestFirst(values []string) []string {
	values = slices.Clone(values)
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })
	return values
}
