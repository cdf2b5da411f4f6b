package workspaceapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
)

// maxBody bounds the body of a request that is JSON, in bytes.
const maxBody = 1 << 20

// maxPath is how many characters a path may have by the document.
const maxPath = 4096

// maxSeconds bounds lifetimes, in seconds: ten years.
const maxSeconds = 10 * 365 * 86400

// maxWait bounds how long a request may wait for something, in seconds.
const maxWait = 60

// maxWhole bounds whole numbers: beyond it a JSON number stands for its neighbours, too.
const maxWhole = 1<<53 - 1

// body reads the JSON body of a request. It has answered when it returns false.
func body(w http.ResponseWriter, r *http.Request, to any) bool {
	return httpserver.Body(w, r, maxBody, to)
}

// one is a parameter of the query that may be there once; "" when it is not.
func one(r *http.Request, name string) (value string, given bool, err error) {
	values := r.URL.Query()[name]
	switch len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	default:
		return "", true, bad("", "%s is there %d times", name, len(values))
	}
}

// path is the path that a request names. def is taken where it names none; "": it has to.
func path(r *http.Request, def string) (string, error) {
	value, given, err := one(r, "path")
	switch {
	case err != nil:
		return "", err
	case !given && def != "":
		return def, nil
	case !given:
		return "", bad("name it: ?path=folder/file", "path is missing")
	default:
		return value, checkPath("path", value)
	}
}

// checkPath refuses what no path can be by the document; the rest is package files' to say.
func checkPath(name, value string) error {
	switch {
	case value == "":
		return bad("", "%s is empty", name)
	case !utf8.ValidString(value):
		return bad("", "%s is not UTF-8", name)
	case strings.ContainsRune(value, 0):
		return bad("", "%s holds a NUL", name)
	case utf8.RuneCountInString(value) > maxPath:
		return bad("", "%s has more than %d characters", name, maxPath)
	default:
		return nil
	}
}

// flag is a parameter that is true or false; false where it is left out.
func flag(r *http.Request, name string) (bool, error) {
	value, given, err := one(r, name)
	if err != nil || !given {
		return false, err
	}
	if value != "true" && value != "false" {
		return false, bad("", "%s must be true or false, not %.40q", name, value)
	}
	return value == "true", nil
}

// number is a whole number of the query, at most most; def where it is left out.
func number(r *http.Request, name string, least, most, def int64) (int64, error) {
	n, given, err := httpserver.Number(r, name, least)
	switch {
	case err != nil:
		return 0, bad("", "%v", err)
	case !given:
		return def, nil
	case n > most:
		return 0, bad("", "%s must be at most %d", name, most)
	default:
		return n, nil
	}
}

// waits is how long a request may wait, from the query, in seconds.
func waits(r *http.Request, name string, def float64) (time.Duration, error) {
	value, given, err := one(r, name)
	if err != nil {
		return 0, err
	}
	n := def
	if given {
		if n, err = strconv.ParseFloat(value, 64); err != nil || math.IsNaN(n) || n < 0 || n > maxWait {
			return 0, bad("", "%s must be from 0 to %d seconds, not %.40q", name, maxWait, value)
		}
	}
	return time.Duration(n * float64(time.Second)), nil
}

// seconds reads a length of time of a body.
func seconds(name string, s float64) (time.Duration, error) {
	if math.IsNaN(s) || s < 0 || s > maxSeconds {
		return 0, bad("", "%s must be from 0 to %d, not %v", name, maxSeconds, s)
	}
	return time.Duration(s * float64(time.Second)), nil
}

// whole reads a whole number of a body: 2.0 is one, too.
func whole(name string, n float64, most int64) (int64, error) {
	if math.IsNaN(n) || n < 0 || n > float64(most) || n != math.Trunc(n) {
		return 0, bad("", "%s must be a whole number from 0 to %d, not %v", name, most, n)
	}
	return int64(n), nil
}

// cursor is the number after which a reader wants what follows; given is false where it
// names none.
func cursor(r *http.Request) (after uint64, given bool, err error) {
	for _, text := range append(r.URL.Query()["after"], r.Header.Values("Last-Event-ID")...) { // the last one counts
		if after, err = strconv.ParseUint(text, 10, 64); err != nil && !errors.Is(err, strconv.ErrRange) { // one that large is ahead
			return 0, true, bad("send the id of the last event that you saw, or 0", "the cursor %.40q is no number", text)
		}
		given = true
	}
	return after, given, nil
}
