package httpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
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

// inWords says what is wrong with a body without the words of the program that reads it.
func inWords(err error) error {
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends before its value does")
	case !isType:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	name, is := cmp.Or(wrong.Field, "it"), wrong.Value
	if kind, value, of := strings.Cut(is, " "); of { // number 1.5
		is = "the " + kind + " " + value
	} else if is != "null" {
		is = article(is)
	}
	return fmt.Errorf("%s must be %s, not %s", name, kindOf(wrong.Type), is)
}

// kindOf is what JSON calls the values that a type takes.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Struct, reflect.Map:
		return article("object")
	case reflect.Slice, reflect.Array:
		return article("array")
	case reflect.Bool:
		return article("bool")
	case reflect.String:
		return article("string")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return article("number")
	default:
		return "another value"
	}
}

// article puts one before the name of a kind of values.
func article(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "object", "array":
		return "an " + kind
	default:
		return "a " + kind
	}
}

// decode reads one JSON value with known members and nothing after it.
func decode(data []byte, to any) error {
	if !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return inWords(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its value")
	}
	return shape(data, reflect.TypeOf(to), "")
}
