package httpserver

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Number is a whole number in the query of a request, from least on; one that is too
// large for an int64 is the largest there is. given is false where the query does not
// name it. The error is for the client: the parameter is empty, no number, too small, or
// there twice.
func Number(r *http.Request, name string, least int64) (n int64, given bool, err error) {
	values, given := r.URL.Query()[name]
	if !given {
		return 0, false, nil
	}
	if len(values) > 1 {
		return 0, true, fmt.Errorf("%s is there %d times", name, len(values))
	}
	n, err = strconv.ParseInt(values[0], 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		n, err = math.MaxInt64, nil
	}
	if err != nil || n < least {
		return 0, true, fmt.Errorf("%s must be a number from %d, not %.40q", name, least, values[0])
	}
	return n, true, nil
}

// Time is an instant in the query of a request, in the form of RFC 3339; zero where the
// query does not name it. The error is for the client: the parameter is empty, no time, or
// there twice.
func Time(r *http.Request, name string) (at time.Time, err error) {
	values, given := r.URL.Query()[name]
	if !given {
		return at, nil
	}
	if len(values) > 1 {
		return at, fmt.Errorf("%s is there %d times", name, len(values))
	}
	if at, err = time.Parse(time.RFC3339, values[0]); err != nil {
		return time.Time{}, fmt.Errorf("%s must be a time, not %.40q", name, values[0])
	}
	return at, nil
}
