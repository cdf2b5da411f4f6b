package coppice

import (
	"fmt"

	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/result"
)

// tokens returns the limit of the shape that counts tokens, 0 without it.
func (o OutputOptions) tokens() int {
	if o.Tokens < 0 {
		return result.DefaultTokens
	}
	return o.Tokens
}

// OpenArtifacts returns the artifacts that hosts with these options leave, without starting one.
// The error matches [ErrOptions], also if o does not say where artifacts are and KeepArtifacts is
// not set: they then end with their host.
func OpenArtifacts(o Options) (*artifact.Store, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if r.Output.Artifacts == "" {
		return nil, fmt.Errorf("%w: artifacts end with their host unless Output.Artifacts, Output.KeepArtifacts, COPPICE_ARTIFACTS_DIR or COPPICE_SESSION_FILE is set", ErrOptions)
	}
	return r.store(), nil
}

// Artifacts returns the artifacts of the host: outputs that were too long for
// their results. Its Open, ReadLines and Resolve take the artifact://N of a
// result.
func (h *Host) Artifacts() *artifact.Store { return h.hub.Artifacts() }

func (r resolved) store() *artifact.Store {
	o := r.Output
	return artifact.New(artifact.Options{Dir: o.Artifacts, First: o.FirstArtifact, MaxBytes: o.MaxArtifact, MaxAge: o.MaxAge, MaxTotal: o.MaxTotal})
}

func (r resolved) hub() sinks.HubOptions {
	return sinks.HubOptions{
		Name: nameSinks, Brand: r.Brand, Store: r.store(), Budget: r.Output.Budget, Sinks: r.Sinks, Metrics: r.Metrics, Logger: r.Logger,
		Result: result.Options{MaxImageEdge: r.Output.MaxImageEdge, Tokens: r.Output.tokens()},
	}
}
