package interpreter

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOutdented(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "\n \n": "\n \n", "x = 1\n  y": "x = 1\n  y", "\n  if x:\n    y\n  z": "\nif x:\n  y\nz", "\tx\n\ty": "x\ny", "  x\n\n y": "x\n\n y",
	} {
		require.Equal(t, want, outdented(given), "%q", given)
	}
}

// TestLinesOfEvents are what clients read of each event.
func TestLinesOfEvents(t *testing.T) {
	t.Parallel()
	text := func(e messages.Event) string {
		data, err := json.Marshal(linesOf(e))
		require.NoError(t, err)
		return string(data)
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	require.JSONEq(t, `[{"type":"result","is_main_result":false,"png":"AA==","html":"ab","chart":{"type":"line"},"data":{"a":[1]},"extra":{"x/y":1}}]`, text(messages.Display{Data: messages.Bundle{
		"image/png": raw(`"AA=="`), "text/html": raw(`["a","b"]`), messages.MIMEChart: raw(`{"type":"line"}`), messages.MIMETable: raw(`{"a":[1]}`), "x/y": raw(`1`),
	}}))
	require.JSONEq(t, `[{"type":"result","is_main_result":true,"text":"it's","json":"s","extra":{}}]`, text(messages.ExecuteResult{Data: messages.Bundle{
		"text/plain": raw(`"\"it's\""`), "application/json": raw(`"s"`),
	}}))
	require.Equal(t, "null", text(messages.Display{Update: true, Data: messages.Bundle{}}))
	require.Equal(t, "null", text(messages.LateEnds()))
	require.Contains(t, text(messages.Notice{Text: "lost"}), `"type":"stderr","text":"lost\n"`)
	require.JSONEq(t, `[{"type":"error","name":"E","value":"m","traceback":"a\nb"}]`, text(messages.Error{ErrorDetails: messages.ErrorDetails{Name: "E", Message: "m", Traceback: []string{"a", "b"}}}))
	end := func(o messages.Outcome) string {
		return text(messages.Final{Result: messages.Result{Outcome: o, Reason: "why", Cells: []messages.CellResult{{ExecutionCount: 3}}}})
	}
	count := `{"type":"number_of_executions","execution_count":3}]`
	require.JSONEq(t, "["+count, end(messages.OutcomeOK))
	require.JSONEq(t, "["+count, end(messages.OutcomeError), "its error was told")
	require.JSONEq(t, `[{"type":"error","name":"UnexpectedEndOfExecution","value":"why","traceback":""},`+count, end(messages.OutcomeLost))
	require.Contains(t, end(messages.OutcomeCancelled), "KeyboardInterrupt")
	require.Contains(t, end(messages.OutcomeTimeout), "TimeoutError")
	restored := func(m messages.Memory) string {
		return text(messages.Final{Result: messages.Result{Outcome: messages.OutcomeOK, State: messages.StateRestored, Restored: &messages.Restored{Memory: m}}})
	}
	require.Equal(t, "null", restored(messages.Memory{Kept: []string{"x"}}), "all is as it was")
	require.Contains(t, restored(messages.Memory{Changed: []messages.ChangedName{{Name: "f", Change: "it was closed"}}}), "f (it was closed)")
}

// TestAQuietStream is kept alive, and no longer than it lasts.
func TestAQuietStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRecorder()
		l := newLines(r, func() { t.Error("the client is there") })
		time.Sleep(3*keepAlive + time.Second)
		synctest.Wait()
		l.send(plainLine{"end_of_execution"})
		l.close()
		require.Equal(t, 3, strings.Count(r.Body.String(), `{"type":"keepalive"}`+"\n"))
		require.True(t, strings.HasSuffix(r.Body.String(), `{"type":"end_of_execution"}`+"\n"))
	})
}
