package coppice

import (
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/secret"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/audit"
)

// openAudit opens the audit log, when there is to be one.
func (h *Host) openAudit() error {
	if h.o.Audit == nil {
		return nil
	}
	o := *h.o.Audit
	if b, ok := can[kernel.Secretive](h); ok {
		o.Secrets = append(b.Secrets(), o.Secrets...)
	}
	for _, kv := range h.o.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && (secret.Name(k) || secret.Value(v)) {
			o.Secrets = append(o.Secrets, v)
		}
	}
	log, err := audit.Open(o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h.audit = log
	return nil
}

// record writes the line of a call. A log that cannot be written is told to the
// logger: the call has happened.
func (h *Host) record(e messages.Execute, r messages.Result) {
	if h.audit == nil {
		return
	}
	var secrets []string
	for k, v := range e.Env {
		if secret.Name(k) || secret.Value(v) {
			secrets = append(secrets, v)
		}
	}
	if err := h.audit.Write(e, r, secrets...); err != nil {
		h.o.Logger.Error("the audit log could not be written", "exec", e.ID, "err", err)
	}
}
