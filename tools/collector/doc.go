// Package collector has no code but a test: that what coppice serve sends is what an
// OpenTelemetry collector takes. The receiver is the one that collectors are made of, and it
// links too much for the module of the repository.
package collector
