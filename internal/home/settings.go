package home

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration reads a time as people write it in a variable or a flag: "90s", "2m", or a
// number of seconds. It is more than nothing, and less than a year.
func Duration(text string) (time.Duration, error) {
	const year = 365 * 24 * time.Hour
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numeric := strconv.ParseFloat(text, 64)
		if err = numeric; seconds > 0 && seconds < year.Seconds() { // not a number is neither
			d = time.Duration(seconds * float64(time.Second))
		}
	}
	if err != nil || d <= 0 || d >= year {
		return 0, fmt.Errorf("%q is no time; write it as 90s, 2m or a number of seconds", text)
	}
	return d, nil
}

// size is a number, the letter of its unit, and what may follow that.
var size = regexp.MustCompile(`^([0-9.]+)(?:([KMGTkmgt])[Ii]?)?[Bb]?$`)

// Size reads a number of bytes as people write it in a variable or a flag: "1048576",
// "512M", "2G", "1.5GiB". K, M, G and T are powers of 1,024, in either case, with B or iB
// behind them if one likes. It is more than nothing.
func Size(text string) (int64, error) {
	if m := size.FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		if m[2] != "" {
			n *= float64(int64(1) << (10 * (strings.Index("KMGT", strings.ToUpper(m[2])) + 1)))
		}
		if err == nil && n >= 1 && n < math.MaxInt64 {
			return int64(n), nil
		}
	}
	return 0, fmt.Errorf("%q is no size; write it as 512M, 2G or a number of bytes", text)
}

// Length reads a [Size] of what is held in memory: less than 2 GiB.
func Length(text string) (int, error) {
	n, err := Size(text)
	if err == nil && n > math.MaxInt32 {
		return 0, fmt.Errorf("%q is more than a text can hold; write less than 2G", text)
	}
	return int(n), err
}

// Limit reads a [Duration]; none is -1, for a time without an end.
func Limit(text string) (time.Duration, error) {
	if text == "none" {
		return -1, nil
	}
	d, err := Duration(text)
	if err != nil {
		err = fmt.Errorf("%w, or none", err)
	}
	return d, err
}

// Count reads a whole number that is more than nothing.
func Count(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number from 1 on; write it as 1, 20 or 300", text)
	}
	return int(n), nil
}

// Share reads a number that is more than nothing and may have a fraction, as that of
// processors.
func Share(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q is no number above 0; write it as 0.5, 1 or 2", text)
	}
	return n, nil
}

// Fill reads a variable of env into what to points at, if that has no value of its own
// and the variable is there. The error names the variable, and to is as it was.
func Fill[T comparable](env []string, variable string, to *T, read func(text string) (T, error)) error {
	var none T
	text := Lookup(env, variable)
	if *to != none || text == "" {
		return nil
	}
	v, err := read(text)
	if err != nil {
		return fmt.Errorf("%s: %w", variable, err)
	}
	*to = v
	return nil
}

// FillList reads a variable of env that is a list of folders, written as PATH is, into
// what to points at, if that is nil and the variable is there. The error names the
// variable, and to is as it was.
func FillList(env []string, variable string, to *[]string) error {
	text := Lookup(env, variable)
	if *to != nil || text == "" {
		return nil
	}
	list := filepath.SplitList(text)
	if slices.Contains(list, "") {
		return fmt.Errorf("%s: %q has a folder without a name; write . for the working directory", variable, text)
	}
	*to = list
	return nil
}

// FillWords is FillList for words with commas between them.
func FillWords(env []string, variable string, to *[]string) error {
	text := Lookup(env, variable)
	if *to != nil || text == "" {
		return nil
	}
	var list []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			return fmt.Errorf("%s: %q has an empty word; write a,b", variable, text)
		}
		list = append(list, word)
	}
	*to = list
	return nil
}
