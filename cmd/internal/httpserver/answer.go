package httpserver

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressFrom is from which size on an answer is compressed, in bytes: a smaller one fits in
// a few packets.
const compressFrom = 4 << 10

// JSON answers a request with one value, as it is. Lists and texts, which may be long, are
// for [Answer].
func JSON(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer could not be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who has gone cannot be told
}

// Answer answers a request with one value: compressed with gzip when it is long and r says
// that the client takes that.
func Answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "the answer could not be written", http.StatusInternalServerError)
		return
	}
	AnswerText(w, r, status, append(data, '\n'))
}

// AnswerText is [Answer] for what is JSON already.
func AnswerText(w http.ResponseWriter, r *http.Request, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Vary", "Accept-Encoding")
	if len(data) < compressFrom || !takesGzip(r.Header) {
		w.WriteHeader(status)
		_, _ = w.Write(data) // who has gone cannot be told
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z, _ := compressors.Get().(*gzip.Writer)
	z.Reset(w)
	_, err := z.Write(data)
	if err == nil {
		_ = z.Close() // who has gone cannot be told
	}
	z.Reset(io.Discard) // it holds on to no answer
	compressors.Put(z)
}

// compressors are those that no answer uses. Their level is the fastest: a page asks for the
// same lists every few seconds.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // there is such a level
	return z
}}

// takesGzip reports whether a client asks for gzip by its name, and not with the weight 0.
func takesGzip(h http.Header) bool {
	for _, value := range h.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(value, ",") {
			name, more, _ := strings.Cut(one, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, weighed := strings.CutPrefix(strings.ToLower(strings.TrimSpace(more)), "q=")
			weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return !weighed || err == nil && weight > 0
		}
	}
	return false
}
