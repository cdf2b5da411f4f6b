package httpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"
)

// bodyTime is how long the body of a request may take.
const bodyTime = time.Minute

// Body reads the body of a request into to: one JSON value with known members, of
// at most that many bytes, within a minute. Otherwise it answers with what is
// wrong, and returns false.
func Body(w http.ResponseWriter, r *http.Request, most int64, to any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Error(w, http.StatusUnsupportedMediaType, "not_json", "the body is not said to be JSON", "send the header Content-Type: application/json")
		return false
	}
	if r.ContentLength > most && r.Header.Get("Expect") != "" { // then nothing needs to be sent
		tooLarge(w, most)
		return false
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a test's recorder has none
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		tooLarge(w, most)
		return false
	}
	if err == nil {
		err = decode(data, to)
	}
	if err != nil {
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
	return nil
}
