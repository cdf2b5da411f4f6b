package starve

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// Variable names the file in which programs note how many verdicts they put off.
const Variable = "COPPICE_TEST_POSTPONED"

// Note adds what this process has put off to that file, if there is one. The end of a
// TestMain calls it.
func Note() {
	path := os.Getenv(Variable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600) //nolint:gosec // the suite named it
	if err == nil {
		_, err = fmt.Fprintln(f, opportunity.Postponed())
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "note what was put off:", err)
	}
}

// Noted is the sum of what a file has.
func Noted(path string) (sum int64, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // the suite named it
	if os.IsNotExist(err) {
		return 0, nil
	}
	for line := range strings.FieldsSeq(string(text)) {
		var n int64
		if n, err = strconv.ParseInt(line, 10, 64); err != nil {
			break
		}
		sum += n
	}
	if err != nil {
		return 0, fmt.Errorf("read how many verdicts were put off: %w", err)
	}
	return sum, nil
}
