package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	proto "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	wire "google.golang.org/protobuf/proto"

	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) {
	if os.Getenv("COPPICE_TEST_TRACES") != "" {
		os.Exit(send())
	}
	goleak.VerifyTestMain(m)
}

func TestWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
		err  string
	}{
		"nothing":             {},
		"an endpoint":         {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, want: true},
		"one for traces":      {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, want: true},
		"the exporter":        {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want: true},
		"none":                {env: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}},
		"disabled":            {env: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}},
		"the protocol":        {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}, want: true},
		"another protocol":    {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "x"}, err: `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"; http/protobuf`},
		"one for traces wins": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "otlp"}, want: true},
		"another exporter":    {env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, err: `OTEL_TRACES_EXPORTER is "zipkin"; otlp or none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on, err := wanted(func(name string) string { return tc.env[name] })
			if tc.err != "" {
				require.ErrorIs(t, err, ErrSettings)
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, on)
		})
	}
}

// parent is who asks: the trace and the span of a traceparent.
const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// send is another process, since the exporter reads the environment of its own: it
// traces a request, a call and a cell.
func send() int {
	ctx := context.Background()
	traces, err := Start(ctx, Options{Getenv: os.Getenv, Version: "1.2.3", Warn: func(text string) { _, _ = io.WriteString(os.Stderr, text) }})
	if err != nil {
		return 2
	}
	served := traces.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		sink := traces.Attach(nil)[0].For(r.Context(), messages.Execute{ID: "x1"})
		for _, e := range []messages.Event{
			messages.Status{Status: messages.CellRunning}, messages.Stream{Name: messages.StdoutStream, Text: "secret"}, messages.Status{Status: messages.CellComplete},
		} {
			_ = sink.Consume(r.Context(), e)
		}
		_ = sink.Close()
	}), func(context.Context) string { return "POST /api/executions" })
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil)
	request.Header.Set("Traceparent", parent)
	served.ServeHTTP(httptest.NewRecorder(), request)
	late, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if traces.End(late) != nil {
		return 3
	}
	return 0
}

func TestARequestACallAndACellAreOneTrace(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]*proto.Span{}
	about := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = wire.Unmarshal(body, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		about += sent.String()
		for _, r := range sent.GetResourceSpans() {
			for _, s := range r.GetScopeSpans() {
				for _, span := range s.GetSpans() {
					got[span.GetName()] = span
				}
			}
		}
	}))
	defer server.Close()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), "COPPICE_TEST_TRACES=1", "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_RESOURCE_ATTRIBUTES=team=blue")
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)

	mu.Lock()
	defer mu.Unlock()
	request, call, cell := got["POST /api/executions"], got["coppice.call"], got["coppice.cell"]
	require.NotNil(t, request)
	require.NotNil(t, call)
	require.NotNil(t, cell)
	for _, span := range []*proto.Span{request, call, cell} {
		require.Equal(t, "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c", string(span.GetTraceId()))
	}
	require.Equal(t, "\xb7\xad\x6b\x71\x69\x20\x33\x31", string(request.GetParentSpanId()))
	require.Equal(t, request.GetSpanId(), call.GetParentSpanId())
	require.Equal(t, call.GetSpanId(), cell.GetParentSpanId())
	for _, text := range []string{"1.2.3", "coppice", "blue"} {
		require.Contains(t, about, text)
	}
	require.NotContains(t, about, "secret")
}

func TestACollectorThatIsAwayIsSaidOnce(t *testing.T) {
	t.Parallel()
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), "COPPICE_TEST_TRACES=1", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT=200")
	out, _ := program.CombinedOutput() // how it ends is the exporter's affair
	require.Equal(t, 1, strings.Count(string(out), "traces were not sent"), "%s", out)
}

func TestNoTraces(t *testing.T) {
	t.Parallel()
	traces, err := Start(t.Context(), Options{Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	require.Nil(t, traces)
	require.Empty(t, traces.Attach(nil))
	next := http.NotFoundHandler()
	require.NotNil(t, traces.Handler(next, nil))
	require.NoError(t, traces.End(t.Context()))
}
