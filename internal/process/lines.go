package process

import "strings"

// maxLine bounds what Lines holds back for a line that does not end, in bytes.
const maxLine = 8 << 10

// Lines returns a tee for a [Ring] that calls emit for each line of the output,
// without its end. A line of more than 8 KiB comes in pieces. What follows the
// last line end is not emitted. One tee serves one ring.
func Lines(emit func(line string)) func(p []byte) {
	var part []byte // belongs to the goroutine that reads the output
	return func(p []byte) {
		for _, c := range p {
			if c == '\n' || len(part) >= maxLine {
				emit(strings.TrimSuffix(string(part), "\r"))
				part = part[:0]
			}
			if c != '\n' {
				part = append(part, c)
			}
		}
	}
}
