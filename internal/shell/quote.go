package shell

import "strings"

// Quote writes text as a word of a POSIX shell (POSIX.1-2024, 2.2.2), as it is where nothing
// in it means anything to one.
func Quote(text string) string {
	special := func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%,", r)
		return !plain
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
