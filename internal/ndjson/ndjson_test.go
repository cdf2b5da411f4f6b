package ndjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/ndjson"
	"github.com/coppice-run/coppice/messages"
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	tests := map[string]ndjson.Frame{
		`{"type":"started","id":7}`:                                                                                    {Type: "started", ID: 7},
		`{"id":7,"seq":2,"type":"stdout","text":"a\n\"\\\/\u00e9é"}`:                                                   {Type: "stdout", ID: 7, Seq: 2, Text: "a\n\"\\/éé"},
		`{"id":7,"seq":2,"type":"stderr","late":true,"text":""}`:                                                       {Type: "stderr", ID: 7, Seq: 2, Late: true},
		`{"id":7,"seq":2,"type":"stdout","text":"\ud83d\ude00 \ud800"}`:                                                {Type: "stdout", ID: 7, Seq: 2, Text: "😀 \ufffd"},
		`{"id":7,"seq":3,"type":"dropped","chars":99}`:                                                                 {Type: "dropped", ID: 7, Seq: 3, Chars: 99},
		`{"id":7,"seq":3,"type":"result","data":{"text/plain":"2"},"count":5}`:                                         {Type: "result", ID: 7, Seq: 3, Count: 5, Data: messages.Bundle{"text/plain": []byte(`"2"`)}},
		`{"id":7,"seq":3,"type":"result","data":{"application/json":[1,{"a":null}]},"metadata":{"k":1}}`:               {Type: "result", ID: 7, Seq: 3, Metadata: []byte(`{"k":1}`), Data: messages.Bundle{"application/json": []byte(`[1,{"a":null}]`)}},
		`{"id":7,"seq":4,"type":"display","data":{},"display_id":"d","update":true}`:                                   {Type: "display", ID: 7, Seq: 4, Data: messages.Bundle{}, DisplayID: "d", Update: true},
		`{"id":7,"seq":4,"type":"clear","wait":true}`:                                                                  {Type: "clear", ID: 7, Seq: 4, Wait: true},
		`{"id":7,"seq":5,"type":"error","name":"E","message":"m","traceback":["a","b"]}`:                               {Type: "error", ID: 7, Seq: 5, Name: "E", Message: "m", Traceback: []string{"a", "b"}},
		`{"id":7,"seq":5,"type":"input_request","request":"7.1","prompt":"? ","password":true}`:                        {Type: "input_request", ID: 7, Seq: 5, Request: "7.1", Prompt: "? ", Password: true},
		`{"id":7,"seq":6,"type":"done","ok":true,"count":5,"seconds":0.000125}`:                                        {Type: "done", ID: 7, Seq: 6, OK: true, Count: 5, Seconds: 0.000125},
		`{"id":7,"seq":6,"type":"done","ok":false,"count":5,"seconds":12.5,"interrupted":true,"stdin_requested":true}`: {Type: "done", ID: 7, Seq: 6, Count: 5, Seconds: 12.5, Interrupted: true, StdinRequested: true},
		`{"type":"pong","n":12}`:                                         {Type: "pong", N: 12},
		`{"type":"exit","pid":5,"signal":9,"stderr":"x"}`:                {Type: "exit", PID: 5, Signal: 9, Stderr: "x"},
		` { "type" : "ready" , "version" : 1, "pid": 3, "python":"3.9"}`: {Type: "ready", Version: 1, PID: 3, Python: "3.9"},
		`{"type":"news","of":"a later version"}`:                         {Type: "news"},
	}
	for line, want := range tests {
		got, err := ndjson.ParseFrame([]byte(line))
		require.NoError(t, err, line)
		require.Empty(t, cmp.Diff(want, got), line)
	}
}

func TestBrokenFramesAreRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		``, `{`, `[]`, `null`, `{}`, `{"type":""}`, `{"type":5}`, `{"id":-1,"type":"done"}`, `{"id":1.5,"type":"done"}`, `{"id":01,"type":"done"}`,
		`{"id":1,"seq":2,"type":"stdout","text":"a}`, `{"id":1,"seq":2,"type":"stdout","text":"a"`, `{"id":1,"seq":2,"type":"stdout","text":"a"}}`,
		`{"id":1,"seq":2,"type":"stdout","text":"a"} x`, `{"id":1,"seq":2,"type":"stdout","text":"\x"}`, `{"id":1,"type":"done","seconds":.5}`,
		`{"id":1,"type":"done","seconds":00.5}`, `{"id":1,"type":"done","ok":maybe}`, `{"id":1,"type":"result","data":{"a":"b"}`, `{"id":1,"type":"result","data":{"a":}}`,
		"{\"id\":1,\"seq\":2,\"type\":\"stdout\",\"text\":\"a\nb\"}", `{"id":99999999999999999999,"type":"done"}`, `{"type":"done",}`, `{"type":"done" "id":1}`,
	} {
		_, err := ndjson.ParseFrame([]byte(line))
		require.Error(t, err, line)
	}
}

// FuzzParseFrame: nothing makes the parser panic, and what it makes of a line is
// what encoding/json makes of it.
func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"seq":2,"type":"stdout","text":"a\n"}`, `{"id":1,"seq":2,"type":"done","ok":true,"count":1,"seconds":0.1}`,
		`{"id":1,"seq":2,"type":"result","data":{"text/plain":"1","a":"\""},"count":1}`, `{"type":"pong","n":3}`, `{"type":"stdout","late":false,"text":"\u0041"}`,
		`{"type":"result","data":{"a":"b"},"data":{"c":"d"}}`, `{"type":"error","traceback":["a"],"ID":3}`, `{"id":1,"id":2,"type":"done","data":{"a":"b","a":"c"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := ndjson.ParseFrame(line)
		var want ndjson.Frame
		wantErr := json.Unmarshal(line, &want)
		if wantErr != nil || want.Type == "" {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(got, want), "%s\n%s", line, cmp.Diff(want, got))
	})
}

func TestAppendRequest(t *testing.T) {
	t.Parallel()
	code, value := "a\n\"é\" </script>", ""
	tests := []struct {
		r    ndjson.Request
		want string
	}{
		{ndjson.Request{Type: ndjson.TypeExecute, ID: 3, Code: &code}, `{"type":"execute","id":3,"code":"a\n\"é\" </script>"}`},
		{ndjson.Request{Type: ndjson.TypeExecute, ID: 3, Code: &value, AllowStdin: true}, `{"type":"execute","id":3,"allow_stdin":true,"code":""}`},
		{ndjson.Request{Type: ndjson.TypeExecute, ID: 3, Code: &code, Cwd: "/x", Env: ndjson.EnvPatch(map[string]string{"A": "1", "B": ""})}, `{"type":"execute","id":3,"cwd":"/x","env":{"A":"1","B":""},"code":"a\n\"é\" </script>"}`},
		{ndjson.Request{Type: ndjson.TypeInit, Version: ndjson.Version, Env: map[string]*string{"A": nil}, Prelude: "x"}, `{"type":"init","version":1,"env":{"A":null},"prelude":"x"}`},
		{ndjson.Request{Type: ndjson.TypeInput, Request: "1.1", Value: &value}, `{"type":"input","request":"1.1","value":""}`},
		{ndjson.Request{Type: ndjson.TypeSignal, N: 4, PID: 5, Signal: 9, Group: true}, `{"type":"signal","n":4,"pid":5,"signal":9,"group":true}`},
	}
	for _, tt := range tests {
		got, err := ndjson.AppendRequest([]byte("before "), tt.r)
		require.NoError(t, err)
		line, ok := strings.CutPrefix(string(got), "before ")
		require.True(t, ok)
		require.JSONEq(t, tt.want, line)
		require.Equal(t, 1, strings.Count(line, "\n"))
		require.True(t, strings.HasSuffix(line, "}\n"))
	}
	require.Nil(t, ndjson.EnvPatch(nil))
	rapid.Check(t, func(t *rapid.T) { // code is written by hand when it is ASCII
		code := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom(nil, unicode.ASCII_Hex_Digit, unicode.Cc, unicode.Po), 0, 40, -1)).Draw(t, "code")
		line, err := ndjson.AppendRequest(nil, ndjson.Request{Type: ndjson.TypeExecute, ID: 1, Code: &code})
		require.NoError(t, err)
		var back ndjson.Request
		require.NoError(t, json.Unmarshal(line, &back))
		require.Equal(t, code, *back.Code)
	})

	long := strings.Repeat("x", ndjson.MaxRequest)
	for _, r := range []ndjson.Request{{Type: ndjson.TypeExecute, ID: 1, Code: &long}, {Type: ndjson.TypeInit, Prelude: long}, {Type: ndjson.TypeInput, Value: &long}} {
		got, err := ndjson.AppendRequest([]byte("before"), r)
		require.ErrorIs(t, err, ndjson.ErrRequestTooLong)
		require.Equal(t, "before", string(got))
	}
}

// TestReaderReadsWhatWasWritten: however the bytes come, whole lines come out,
// long ones as errors in their place.
func TestReaderReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	const limit = 2000
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOf(rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(limit-3, limit+3), rapid.IntRange(0, 5*limit))).Draw(t, "lengths")
		var all bytes.Buffer
		for i, n := range lengths {
			all.WriteString(strings.Repeat(string(rune('a'+i%26)), n) + "\n")
		}
		var src io.Reader = &all
		if rapid.Bool().Draw(t, "slow") {
			src = iotest.OneByteReader(src)
		}
		r := ndjson.NewReader(src, limit)
		if rapid.Bool().Draw(t, "small") {
			r = ndjson.NewSmallReader(src, limit)
		}
		for i, n := range lengths {
			line, err := r.Next()
			if n > limit {
				var long *ndjson.TooLongError
				require.ErrorAs(t, err, &long)
				require.Equal(t, limit, long.Limit)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(string(rune('a'+i%26)), n), string(line))
			if rapid.Bool().Draw(t, "release") {
				r.Release()
			}
		}
		_, err := r.Next()
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestReaderAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"a line without its end": "abc", "a long line without its end": strings.Repeat("x", 5000)} {
		r := ndjson.NewSmallReader(strings.NewReader(content), 1000)
		_, err := r.Next()
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, name)
	}
	r := ndjson.NewReader(iotest.ErrReader(errors.New("torn")), 10)
	_, err := r.Next()
	require.EqualError(t, err, "torn")
	r = ndjson.NewReader(empty{}, 10)
	_, err = r.Next()
	require.ErrorIs(t, err, io.ErrNoProgress)
}

type empty struct{}

func (empty) Read([]byte) (int, error) { return 0, nil }

// TestReaderGoesOnAfterADeadline: what came before the deadline is not lost.
func TestReaderGoesOnAfterADeadline(t *testing.T) {
	t.Parallel()
	r := ndjson.NewReader(&stuttering{parts: []string{"ab", "", "c\nde", "", "", "f\n"}}, 100)
	var lines []string
	timeouts := 0
	for {
		line, err := r.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			timeouts++
			r.Release()
			continue
		}
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		lines = append(lines, string(line))
	}
	require.Equal(t, []string{"abc", "def"}, lines)
	require.Equal(t, 3, timeouts)
}

// stuttering runs into a deadline for every empty part.
type stuttering struct{ parts []string }

func (s *stuttering) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	if part == "" {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(p, part), nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"), uint8(3))
	f.Add([]byte("aaaaaaaaaaaaaaa\nb\n"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		r := ndjson.NewSmallReader(iotest.HalfReader(bytes.NewReader(data)), int(limit))
		want := bytes.SplitAfter(data, []byte("\n"))
		for _, w := range want {
			line, err := r.Next()
			body, whole := bytes.CutSuffix(w, []byte("\n"))
			switch {
			case whole && len(body) <= int(limit):
				require.NoError(t, err)
				require.True(t, bytes.Equal(body, line))
			case whole:
				var long *ndjson.TooLongError
				require.ErrorAs(t, err, &long)
			case len(body) > 0:
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			default:
				require.ErrorIs(t, err, io.EOF)
			}
		}
	})
}

// frames are what a cell answers with most often.
var frames = map[string]string{
	"text":   `{"id":7,"seq":2,"type":"stdout","text":"` + strings.Repeat("0123456789\\n", 20) + `"}`,
	"result": `{"id":7,"seq":3,"type":"result","data":{"text/plain":"2"},"count":5}`,
	"done":   `{"id":7,"seq":6,"type":"done","ok":true,"count":5,"seconds":0.000125}`,
	"error":  `{"id":7,"seq":5,"type":"error","name":"E","message":"m","traceback":["a","b"]}`,
}

// What a frame costs is paid for every line that a session prints. The numbers are
// what it takes now; whoever lowers one lowers it here too.
func TestAllocationsOfAFrame(t *testing.T) {
	for name, most := range map[string]float64{"text": 3, "result": 5, "done": 1, "error": 10} {
		line := []byte(frames[name])
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			if _, err := ndjson.ParseFrame(line); err != nil {
				t.Fatal(err)
			}
		}), most, name)
	}
}

func BenchmarkParseFrame(b *testing.B) {
	for name, line := range frames {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ndjson.ParseFrame([]byte(line)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
