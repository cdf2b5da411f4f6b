// Package telemetry sends the traces of a command where the environment says, by the
// variables that OpenTelemetry has for this: a span for each HTTP request, below it one
// for each call and for each cell.
//
// # Guarantees
//
//   - Without one of these variables nothing is started, sent or measured:
//     OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
//     OTEL_TRACES_EXPORTER=otlp. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none
//     switch it off.
//   - A collector that is slow or away holds nothing back: spans are sent in batches
//     beside the work, and left out when there are too many. What cannot be sent is
//     said once a minute at most.
//   - No span holds code, output or values; see package sinks/spans.
//   - [Traces.End] sends what is left, for as long as its context allows.
//
// The protocol is http/protobuf, which every collector takes. The other variables of the
// SDK and its exporter count too: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_EXPORTER_OTLP_HEADERS and the others of that
// beginning.
package telemetry
