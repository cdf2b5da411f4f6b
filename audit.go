package coppice

import (
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/secret"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
)

// openAudit opens the audit log and makes it one of the host's sinks, when there is
// to be one.
func (h *Host) openAudit() error {
	if h.o.Audit == nil {
		return nil
	}
	o := *h.o.Audit
	if b, ok := can[kernel.Secretive](h); ok {
		o.Secrets = append(b.Secrets(), o.Secrets...)
	}
	for _, kv := range h.o.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && secret.Variable(k, v) {
			o.Secrets = append(o.Secrets, v)
		}
	}
	if o.Logger == nil {
		o.Logger = h.o.Logger
	}
	log, err := audit.Open(o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h.audit = log
	h.o.Sinks = append([]sinks.Attachment{log.Attachment()}, h.o.Sinks...)
	return nil
}
