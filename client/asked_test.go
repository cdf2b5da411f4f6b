package client_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

const (
	asks  = `{"seq":1,"cell":0,"type":"input_request","id":"q","prompt":"?"}`
	again = `{"seq":2,"cell":0,"type":"input_request","id":"q","prompt":"?"}`
	ends  = `{"seq":3,"cell":0,"type":"final","outcome":"ok","state":"kept","cells":[]}`
)

// asking is a server whose code asks, again after the connection broke, and that says this to an
// answer.
func asking(t *testing.T, answer http.HandlerFunc) *client.Client {
	t.Helper()
	_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/input"):
			answer(w, r)
		case !strings.HasSuffix(r.URL.Path, "/events"):
			says(http.StatusCreated, `{"id":"x1"}`)(w, r)
		case r.Header.Get("Last-Event-ID") == "":
			streams(w, asks)
		default:
			streams(w, again, ends)
		}
	})
	return c
}

// TestWhatWasAnsweredIsNotAskedAgain: by a server that takes over what runs. What was not, is.
func TestWhatWasAnsweredIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[messages.InputStatus][]uint64{
		messages.InputAccepted: {1, 3}, messages.InputAnswered: {1, 3}, messages.InputUnknown: {1, 2, 3}, messages.InputExpired: {1, 2, 3},
	} {
		c := asking(t, says(http.StatusOK, `{"status":"`+string(status)+`"}`))
		var seen []uint64
		for e, err := range c.Run(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "1"}}}) {
			require.NoError(t, err)
			seen = append(seen, e.Pos().Seq)
			if q, ok := e.(messages.InputRequest); ok {
				got, err := c.Answer(ctx, "x1", q.ID, "line")
				require.NoError(t, err)
				require.Equal(t, status, got)
			}
		}
		require.Equal(t, want, seen, status)
	}
}

// TestALaterQuestionThatHasTheSameID is asked: a server that takes over counts its questions anew.
func TestALaterQuestionThatHasTheSameID(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{
		{strings.ReplaceAll(again, `"?"`, `"Name?"`), ends},
		{`{"seq":2,"cell":0,"type":"stdout","text":"x"}`, strings.ReplaceAll(again, `"seq":2`, `"seq":3`), strings.ReplaceAll(ends, `"seq":3`, `"seq":4`)},
	} {
		_, c := serve(t, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/input"):
				says(http.StatusOK, `{"status":"accepted"}`)(w, r)
			case !strings.HasSuffix(r.URL.Path, "/events"):
				says(http.StatusCreated, `{"id":"x1"}`)(w, r)
			case r.Header.Get("Last-Event-ID") == "":
				streams(w, asks)
			default:
				streams(w, more...)
			}
		})
		questions := 0
		for e, err := range c.Run(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "1"}}}) {
			require.NoError(t, err)
			if q, ok := e.(messages.InputRequest); ok {
				questions++
				_, err = c.Answer(ctx, "x1", q.ID, "line")
				require.NoError(t, err)
			}
		}
		require.Equal(t, 2, questions)
	}
}

// TestAnAnswerToCodeThatIsGone is lost while the code is followed: it was there when it began.
func TestAnAnswerToCodeThatIsGone(t *testing.T) {
	t.Parallel()
	c := asking(t, says(http.StatusNotFound, `{"error":{"code":"not_found","message":"no"}}`))
	var told *client.Error
	for e, err := range c.Run(ctx, client.Execute{Session: "a", Cells: []messages.Cell{{Code: "1"}}}) {
		require.NoError(t, err)
		if q, ok := e.(messages.InputRequest); ok {
			_, err = c.Answer(ctx, "x1", q.ID, "line")
			require.ErrorAs(t, err, &told)
			require.Equal(t, "lost", told.Code)
		}
	}
	_, err := c.Answer(ctx, "x1", "q", "line")
	require.ErrorAs(t, err, &told)
	require.Equal(t, "not_found", told.Code)
}

// TestAnAnswerWhoseReceiptIsLost is sent again: it is taken once.
func TestAnAnswerWhoseReceiptIsLost(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	c := asking(t, func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			cut(w)
		}
		says(http.StatusOK, `{"status":"already answered"}`)(w, r)
	})
	status, err := c.Answer(ctx, "x1", "q", "line")
	require.NoError(t, err)
	require.Equal(t, messages.InputAnswered, status)
}
