package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/spans"
)

// Options say whose traces they are.
type Options struct {
	// Getenv reads a variable of the environment. Required. The exporter reads those of
	// its own from the process's.
	Getenv func(string) string
	// Version is the program's.
	Version string
	// Warn hears what could not be sent. Required; any goroutine calls it.
	Warn func(string)
}

// Traces sends traces. A nil one sends none, and all its methods may be called.
type Traces struct{ provider *sdk.TracerProvider }

// ErrSettings is matched by the error for a variable that asks for what there is not.
var ErrSettings = errors.New("the settings of OpenTelemetry cannot be followed")

// wanted says whether the environment asks for traces.
func wanted(getenv func(string) string) (bool, error) {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false, nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("%w: OTEL_TRACES_EXPORTER is %q; otlp or none", ErrSettings, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := getenv(name); protocol {
		case "http/protobuf":
			return true, nil
		case "":
		default:
			return false, fmt.Errorf("%w: %s is %q; http/protobuf, usually at port 4318, is what there is", ErrSettings, name, protocol)
		}
	}
	return true, nil
}

// Start returns what sends the traces of this process, nil when none are wanted. The
// error matches ErrSettings, or is the exporter's.
func Start(ctx context.Context, o Options) (*Traces, error) {
	if on, err := wanted(o.Getenv); err != nil || !on {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces: %w", err)
	}
	name := o.Getenv("OTEL_SERVICE_NAME")
	if name == "" {
		name = "coppice"
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", name), attribute.String("service.version", o.Version)))
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("say whose traces they are: %w", errors.Join(err, exporter.Shutdown(ctx)))
	}
	otel.SetErrorHandler(seldom(o.Warn))
	return &Traces{provider: sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))}, nil
}

// again is how long a warning is not repeated.
const again = time.Minute

// seldom passes the first of many errors on, as an exporter has them while its collector
// is away.
func seldom(warn func(string)) otel.ErrorHandlerFunc {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); last.IsZero() || now.Sub(last) >= again {
			last = now
			warn("traces were not sent: " + err.Error())
		}
	}
}

// Attach adds the sink that makes the spans of calls and cells.
func (t *Traces) Attach(to []sinks.Attachment) []sinks.Attachment {
	if t == nil {
		return to
	}
	return append(slices.Clip(to), spans.New(spans.Options{Tracer: t.provider.Tracer("github.com/coppice-run/coppice")}).Attachment())
}

// Handler makes a span of each request, named by route, below that of who asks if it
// sends a traceparent.
func (t *Traces) Handler(next http.Handler, route func(context.Context) string) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "request", otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return route(r.Context()) }))
}

// TraceID is the id of the trace that ctx belongs to, "" where none is sent.
func TraceID(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return ""
	}
	return span.TraceID().String()
}

// End sends what is left until ctx ends.
func (t *Traces) End(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}
