package home

import (
	"fmt"
	"strconv"
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
