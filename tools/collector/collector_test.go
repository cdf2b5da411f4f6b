package collector

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// patience is generous: other programs may have the processors.
const patience = 2 * time.Minute

// receive starts the receiver of a collector, and returns its address and what it has got.
func receive(t *testing.T) (string, *consumertest.TracesSink) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())

	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	said := map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}
	require.NoError(t, confmap.NewFromStringMap(said).Unmarshal(config))
	sink := new(consumertest.TracesSink)
	receiver, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, receiver.Shutdown(t.Context())) })
	return "http://" + address, sink
}

// server is a coppice serve that runs.
type server struct {
	process *exec.Cmd
	url     string
	token   string
}

// serve starts COPPICE with a home of its own.
func serve(t *testing.T, environment ...string) *server {
	t.Helper()
	command, python := os.Getenv("COPPICE"), os.Getenv("COPPICE_TEST_PYTHON")
	require.NotEmpty(t, command, "COPPICE has to name the command: make test-collector does")
	require.NotEmpty(t, python, "COPPICE_TEST_PYTHON has to name an interpreter: make test-collector does")
	home := t.TempDir()
	s := &server{process: exec.Command(command, "serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", python, "--json")}
	s.process.Dir, s.process.Stderr = home, os.Stderr
	s.process.Env = append(append(os.Environ(), "COPPICE_HOME="+home), environment...)
	out, err := s.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.process.Start())
	t.Cleanup(func() { s.end(t) })
	var told struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	require.NoError(t, json.NewDecoder(out).Decode(&told))
	record, err := os.ReadFile(filepath.Clean(told.TokenFile))
	require.NoError(t, err)
	var kept struct{ Token string }
	require.NoError(t, json.Unmarshal(record, &kept))
	s.url, s.token = strings.TrimSuffix(told.URL, "/"), kept.Token
	return s
}

// end ends it in order, so that what it has not sent yet is sent.
func (s *server) end(t *testing.T) {
	t.Helper()
	if s.process.ProcessState == nil {
		require.NoError(t, s.process.Process.Signal(syscall.SIGTERM))
		require.NoError(t, s.process.Wait())
	}
}

// ask sends a request, and returns what is answered.
func (s *server) ask(t *testing.T, method, path, body string, headers map[string]string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewBufferString(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, answer.StatusCode, 300, "%s", text)
	return string(text)
}

// spans are those that a collector has got, by their names.
func spans(sink *consumertest.TracesSink) map[string]ptrace.Span {
	found := map[string]ptrace.Span{}
	for _, traces := range sink.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					found[span.Name()] = span
				}
			}
		}
	}
	return found
}

// A request, its call and its cell are one trace in a collector, below whoever asked.
func TestACollectorSeesARequestACallAndACell(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	address, sink := receive(t)
	s := serve(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+address, "OTEL_RESOURCE_ATTRIBUTES=team=blue")
	s.ask(t, http.MethodPost, "/api/executions", `{"id": "seen-1", "session": "traced", "cells": [{"code": "print('not for the collector')"}]}`,
		map[string]string{"Traceparent": "00-" + trace + "-" + parent + "-01"})
	require.Eventually(t, func() bool {
		return strings.Contains(s.ask(t, http.MethodGet, "/api/executions/seen-1", "", nil), `"outcome":"ok"`)
	}, patience, 50*time.Millisecond)
	s.end(t)

	got := spans(sink)
	request, call, cell := got["POST /api/executions"], got["coppice.call"], got["coppice.cell"]
	for name, span := range map[string]ptrace.Span{"request": request, "call": call, "cell": cell} {
		require.NotEqual(t, ptrace.Span{}, span, "%s in %v", name, got)
		require.Equal(t, trace, span.TraceID().String(), name)
	}
	require.Equal(t, parent, request.ParentSpanID().String())
	require.Equal(t, request.SpanID(), call.ParentSpanID())
	require.Equal(t, call.SpanID(), cell.ParentSpanID())

	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(sink.AllTraces()[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "blue")
	require.NotContains(t, string(text), "not for the collector")
}
