package hostcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func host(o hostcall.Options) *hostcall.Host {
	o.MaxAtOnce = max(o.MaxAtOnce, 1)
	o.Logger = slog.New(slog.DiscardHandler)
	return hostcall.New(o)
}

var exec = messages.Execute{ID: "e-1", Key: messages.SessionKey{Session: "s", Cwd: "/w"}, Owner: "o", InputTimeout: time.Minute}

func calls(h *hostcall.Host, o hostcall.Offer) *hostcall.Calls {
	o.Primitives = primitive.New()
	return h.Calls(exec, o)
}

func call(t *testing.T, c *hostcall.Calls, name, args string) messages.HostResult {
	t.Helper()
	return c.Call(t.Context(), messages.HostCall{ID: "c-1", Kind: messages.CallTool, Name: name, Args: messages.RawJSON(args)}, func(messages.HostEvent) {})
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	type in struct {
		Text string `json:"text,omitempty"`
	}
	of := func(name string, f func(context.Context, in) (any, error)) hostcall.Function {
		return hostcall.Of(name, "", f)
	}
	h := host(hostcall.Options{Functions: []hostcall.Function{
		of("upper", func(_ context.Context, a in) (any, error) { return strings.ToUpper(a.Text), nil }),
		of("who", func(ctx context.Context, _ in) (any, error) {
			caller, ok := hostcall.CallOf(ctx)
			require.True(t, ok)
			return []string{caller.Call, caller.Exec, caller.Owner, caller.Session.Session}, nil
		}),
		of("missing", func(context.Context, in) (any, error) { return nil, fs.ErrNotExist }),
		of("own", func(context.Context, in) (any, error) {
			return nil, &messages.HostError{Type: "KeyError", Message: "x"}
		}),
		of("panics", func(context.Context, in) (any, error) { panic("inside, not for the code") }),
		of("channel", func(context.Context, in) (any, error) { return make(chan int), nil }),
		of("large", func(context.Context, in) (any, error) { return strings.Repeat("x", 9<<20), nil }),
	}, Tools: func(context.Context) map[string]hostcall.Function {
		return hostcall.ByName([]hostcall.Function{of("later", func(context.Context, in) (any, error) { return "launched", nil })})
	}, Lacking: func(_ context.Context, name string) string {
		return map[string]string{"broken": "it is broken"}[name]
	}})
	c := calls(h, hostcall.Offer{Functions: []hostcall.Function{of("own", func(context.Context, in) (any, error) { return "of this call", nil })}})
	for _, want := range []struct{ name, args, value, kind, message string }{
		{"upper", `{"text":"a"}`, `"A"`, "", ""},
		{"upper", `{"txt":"a"}`, "", "TypeError", `upper(): unknown field "txt"`},
		{"upper", `{"text":1}`, "", "TypeError", "upper(): text must be a string, not a JSON number"},
		{"who", `{}`, `["c-1","e-1","o","s"]`, "", ""},
		{"missing", `{}`, "", "FileNotFoundError", "file does not exist"},
		{"own", `{}`, `"of this call"`, "", ""},
		{"panics", `{}`, "", "HostCallError", "the host function panics failed inside (panicked)"},
		{"channel", `{}`, "", "TypeError", "channel returned a value that cannot be sent"},
		{"large", `{}`, "", "ValueError", "large returned"},
		{"later", `{}`, `"launched"`, "", ""},
		{"broken", `{}`, "", "UnknownFunction", "there is no host function broken: it is broken"},
		{"nobody", `{}`, "", "UnknownFunction", "there is no host function nobody; there are channel, large, later, missing, own, panics, upper, who"},
	} {
		r := call(t, c, want.name, want.args)
		if want.kind == "" {
			require.Nil(t, r.Error, want.name)
			require.Equal(t, want.value, string(r.Value), want.name)
			continue
		}
		require.NotNil(t, r.Error, want.name)
		require.Equal(t, want.kind, r.Error.Type, want.name)
		require.Contains(t, r.Error.Message, want.message)
		require.NotContains(t, r.Error.Message, "inside, not")
	}
	require.Equal(t, `"KeyError: x"`, `"`+call(t, calls(h, hostcall.Offer{}), "own", `{}`).Error.Error()+`"`)
}

func TestBudgetOfACell(t *testing.T) {
	t.Parallel()
	h := host(hostcall.Options{MaxCalls: 2, Functions: []hostcall.Function{hostcall.Of("f", "", func(context.Context, struct{}) (int, error) { return 1, nil })}})
	c := calls(h, hostcall.Offer{})
	require.Nil(t, call(t, c, "f", `{}`).Error)
	require.Nil(t, call(t, c, "f", `{}`).Error)
	require.Contains(t, call(t, c, "f", `{}`).Error.Message, "has made its 2 calls")
}

// A function that heeds nothing is given up when its time is over, holds its host's
// end, and is named there.
func TestAFunctionThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := host(hostcall.Options{Functions: []hostcall.Function{{Name: "deaf", Timeout: time.Second, Call: func(context.Context, json.RawMessage) (any, error) {
			<-release
			return "too late", nil
		}}}})
		begin := time.Now()
		r := call(t, calls(h, hostcall.Offer{}), "deaf", `{}`)
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, "TimeoutError", r.Error.Type)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		left := h.Wait(ctx)
		require.Len(t, left, 1)
		require.Equal(t, "host-function/deaf", left[0].Path)
		close(release)
		require.Empty(t, h.Wait(t.Context()))
	})
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := host(hostcall.Options{})
		c := calls(h, hostcall.Offer{})
		answer := c.Ask(t.Context(), messages.InputRequest{ID: "q1"})
		other := messages.SessionKey{Session: "another"}
		require.Equal(t, messages.InputUnknown, h.Submit(&other, "q1", "x"), "the question of another session")
		require.Equal(t, messages.InputAccepted, h.Submit(&exec.Key, "q1", "x"))
		require.Equal(t, messages.InputAnswered, h.Submit(&exec.Key, "q1", "y"))
		require.Equal(t, messages.InputAnswer{Value: "x", Status: messages.InputAccepted}, <-answer)

		answer = c.Ask(t.Context(), messages.InputRequest{ID: "q2"}) // it stays unanswered
		require.Equal(t, messages.InputAnswer{Status: messages.InputExpired, Idle: time.Minute}, <-answer)
		require.Equal(t, messages.InputExpired, h.Submit(nil, "q2", "y"))
		require.Equal(t, messages.InputUnknown, h.Submit(nil, "q3", "y"))

		ctx, cancel := context.WithCancel(t.Context())
		answer = c.Ask(ctx, messages.InputRequest{ID: "q4"})
		cancel()
		require.Equal(t, messages.InputExpired, (<-answer).Status, "its cell has ended")

		for _, handler := range []struct {
			answer hostcall.InputHandler
			want   messages.InputAnswer
		}{
			{func(context.Context, messages.InputRequest) (string, error) { return "typed\r\n", nil }, messages.InputAnswer{Value: "typed", Status: messages.InputAccepted}},
			{func(context.Context, messages.InputRequest) (string, error) { return "", errors.New("no") }, messages.InputAnswer{Status: messages.InputExpired, Reason: "no"}},
			{func(context.Context, messages.InputRequest) (string, error) { panic("no") }, messages.InputAnswer{Status: messages.InputExpired, Reason: "the input handler failed inside (panicked)"}},
		} {
			require.Equal(t, handler.want, <-calls(h, hostcall.Offer{Input: handler.answer}).Ask(t.Context(), messages.InputRequest{ID: messages.NewID()}))
		}
		require.Empty(t, h.Wait(t.Context()))
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := hostcall.Of("f", "", func(context.Context, struct{}) (int, error) { return 1, nil })
	require.NoError(t, hostcall.Check([]hostcall.Function{good}))
	for problem, list := range map[string][]hostcall.Function{
		"needs a name":       {{Name: "_f", Call: good.Call}},
		"has no Call":        {{Name: "f"}},
		"a negative timeout": {{Name: "f", Call: good.Call, Timeout: -1}},
		"two host functions": {good, good},
	} {
		require.ErrorContains(t, hostcall.Check(list), problem)
	}
	_, err := hostcall.Line(strings.Repeat("x", 1<<20+1))
	require.ErrorContains(t, err, "longer than 1 MiB")
	_, err = hostcall.Line("\xff")
	require.ErrorContains(t, err, "not valid UTF-8")
	_, err = hostcall.Line("two\nlines")
	require.ErrorContains(t, err, "more than one line")
	for _, line := range []string{"one", "one\n", "one\r\n"} {
		one, err := hostcall.Line(line)
		require.NoError(t, err)
		require.Equal(t, "one", one)
	}
}

// TestCodeSeesTheFunctions that it can call: those of the host, of the call, and of the
// launcher.
func TestCodeSeesTheFunctions(t *testing.T) {
	t.Parallel()
	type in struct {
		Query    string
		MaxItems *int            `json:"max_items"`
		Tags     []string        `json:"tags,omitempty"`
		ID       json.RawMessage `json:",omitzero"`
		At       time.Time       `json:"at"`
		Hidden   int             `json:"-"`
	}
	none := func(context.Context, struct{}) (any, error) { return nil, nil }
	h := host(hostcall.Options{
		Functions: []hostcall.Function{hostcall.Of("search", "of the host", func(context.Context, in) (any, error) { return nil, nil }), hostcall.Of("both", "of the host", none)},
		Tools: func(context.Context) map[string]hostcall.Function {
			return map[string]hostcall.Function{"shout": {Name: "shout", Description: "a tool"}, "both": {Name: "both"}}
		},
	})
	c := calls(h, hostcall.Offer{Functions: []hostcall.Function{hostcall.Of("both", "of the call", func(context.Context, map[string]int) (any, error) { return nil, nil })}})
	require.False(t, c.Pauses(messages.HostCall{Kind: messages.CallFunctions, Name: "both"}))
	r := c.Call(t.Context(), messages.HostCall{ID: "c-1", Kind: messages.CallFunctions, Name: "functions"}, func(messages.HostEvent) {})
	require.Nil(t, r.Error)
	require.JSONEq(t, `[
		{"name":"both","signature":"","description":"of the call"},
		{"name":"search","signature":"(query: str, max_items: int = ..., tags: list[str] = ..., id = ..., at)","description":"of the host"},
		{"name":"shout","signature":"","description":"a tool"}]`, string(r.Value))
}

// TestWhatAFunctionNeedsIsAskedFor: what its signature shows without a default has to be there.
func TestWhatAFunctionNeedsIsAskedFor(t *testing.T) {
	t.Parallel()
	type in struct {
		Query  string
		Limit  int      `json:"limit,omitempty"`
		Most   *float64 `json:"most"`
		Small  int8     `json:"small,omitzero"`
		Count  uint     `json:"count,omitzero"`
		Tags   []string
		Hidden string `json:"-"`
	}
	type outer struct {
		in
		Page int
	}
	h := host(hostcall.Options{Functions: []hostcall.Function{
		hostcall.Of("search", "", func(_ context.Context, a in) (string, error) { return a.Query, nil }),
		hostcall.Of("embedded", "", func(_ context.Context, a outer) (int, error) { return a.Page, nil }),
		hostcall.Of("any", "", func(_ context.Context, a map[string]int) (int, error) { return len(a), nil }),
	}})
	c := calls(h, hostcall.Offer{})
	for args, want := range map[string]string{
		`{"query":"a","tags":[]}`:                            "",
		`{"Query":"a","TAGS":null,"limit":null,"most":null}`: "",
		`{"query":"","tags":["b"],"limit":3}`:                "",
		`{"tags":[]}`:                                        "search(): the required argument 'query' is missing",
		`{}`:                                                 "search(): the required arguments 'query', 'tags' are missing",
		`{"query":null,"tags":[]}`:                           "search(): query must be a string, not None",
		`{"query":"a","tags":[],"limit":3.5}`:                "search(): limit must be an integer, not a JSON number 3.5",
		`{"query":"a","tags":[],"most":"x"}`:                 "search(): most must be a number, not a JSON string",
		`{"query":"a","tags":[],"small":300}`:                "search(): small must be an integer of 8 bits, not a JSON number 300",
		`{"query":"a","tags":[],"count":-1}`:                 "search(): count must be an integer, 0 or more, not a JSON number -1",
	} {
		r := call(t, c, "search", args)
		if want == "" {
			require.Nil(t, r.Error, args)
			continue
		}
		require.NotNil(t, r.Error, args)
		require.Equal(t, "TypeError: "+want, r.Error.Error(), args)
	}
	require.Nil(t, call(t, c, "embedded", `{}`).Error, "its signature shows none")
	require.Nil(t, call(t, c, "any", `{}`).Error)
}

// TestCodeLearnsWhyThereIsNoAnswer, unless the input has just come to its end.
func TestCodeLearnsWhyThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	for want, handler := range map[string]hostcall.InputHandler{
		"the answer is longer than 1 MiB; put it in a file and answer with its name": func(context.Context, messages.InputRequest) (string, error) {
			return strings.Repeat("x", 1<<20+1), nil
		},
		"the answer has more than one line, and input() reads one; answer each question with a line of its own": func(context.Context, messages.InputRequest) (string, error) {
			return "two\nlines", nil
		},
		"the answer is not valid UTF-8": func(context.Context, messages.InputRequest) (string, error) { return "\xff", nil },
		"the line is dead": func(context.Context, messages.InputRequest) (string, error) {
			return "", errors.New("the line is dead")
		},
		"": func(context.Context, messages.InputRequest) (string, error) { return "", io.EOF },
	} {
		c := calls(host(hostcall.Options{}), hostcall.Offer{Input: handler})
		a := <-c.Ask(t.Context(), messages.InputRequest{ID: "q"})
		require.Equal(t, messages.InputAnswer{Status: messages.InputExpired, Reason: want}, a)
	}
}
