package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"unicode/utf8"

	"github.com/coppice-run/coppice/internal/inbound"
)

// Body reads the body of a request into to: one JSON value with known members, none of
// them null, and all there whose tags have no omitempty, of at most that many bytes. Otherwise it answers with what is wrong, and returns
// false. How long a body may take is the server's to say (Options.BodyTime).
func Body(w http.ResponseWriter, r *http.Request, most int64, to any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Error(w, http.StatusUnsupportedMediaType, "not_json", "the body is not said to be JSON", "send the header Content-Type: application/json")
		return false
	}
	if r.ContentLength > most && r.Header.Get("Expect") != "" { // then nothing needs to be sent
		tooLarge(w, most)
		return false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		tooLarge(w, most)
		return false
	}
	if err == nil {
		err = decode(data, to)
	}
	switch {
	case err == nil:
	case errors.Is(err, inbound.ErrEnding):
		Error(w, http.StatusRequestTimeout, "too_slow", "the body was not there when the server ended", "")
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		Error(w, http.StatusRequestTimeout, "too_slow", "the body was not there in time", "put large data into a file")
		return false
	default:
		Error(w, http.StatusBadRequest, "bad_request", "the body cannot be read: "+err.Error(), "GET /api/openapi.json describes it")
		return false
	}
	return true
}

func tooLarge(w http.ResponseWriter, most int64) {
	Error(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", most), "put large data into a file")
}

// decode reads one JSON value with known members and nothing after it.
func decode(data []byte, to any) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its value")
	}
	return shape(data, reflect.TypeOf(to), "")
}
