package coppice

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/result"
)

// OutputOptions bound what results show and what is kept of the rest. The zero
// value of each field is its default.
type OutputOptions struct {
	// Artifacts is the folder where output goes that is too long for a result. "":
	// PI_ARTIFACTS_DIR from Options.Env; else the path in PI_SESSION_FILE without its
	// .jsonl; else, with KeepArtifacts, ~/.<brand>/artifacts, and without it a
	// folder of this host that Shutdown removes.
	Artifacts     string
	KeepArtifacts bool
	// Budget is the text of one call: bytes, lines, how much of both goes to the
	// head, whether only the tail is shown, and the cap of a line. Zero: 50 KiB
	// and 3,000 lines, of which two fifths go to the head; lines are not cut.
	Budget budget.Options
	// Tokens gives texts another shape: at most so many tokens from the
	// beginning, as result.EstimateTokens counts them, and a <system-reminder>
	// that names the file with all of it. 0: texts keep head and tail; negative:
	// result.DefaultTokens, 20,000.
	Tokens int
	// MaxArtifact is how many bytes of one output are kept. 0: 4 GiB; negative:
	// all.
	MaxArtifact int64
	// MaxAge is how long artifacts are kept after they were written, MaxTotal
	// how many bytes all of them may take together; the newest always stays. 0:
	// for ever, and without limit.
	MaxAge   time.Duration
	MaxTotal int64
	// MaxImageEdge is how many pixels an image may have on its longer side
	// before it is made smaller for the result; the image as it came is in the
	// events. 0: 1,568; negative: images stay as they are.
	MaxImageEdge int
}

// tokens returns the limit of the shape that counts tokens, 0 without it.
func (o OutputOptions) tokens() int {
	if o.Tokens < 0 {
		return result.DefaultTokens
	}
	return o.Tokens
}

// budget is what the result sink shows. With a limit of tokens it shows more of
// the head than that can hold, so that the limit decides.
func (o OutputOptions) budget() budget.Options {
	b := o.Budget
	if n := o.tokens(); n > 0 {
		const most = 4 * 4 // characters of a token, and bytes of one
		b.Bytes, b.HeadBytes, b.TailOnly, b.Lines = most*n, most*n, false, most*n
	}
	return b
}

// OpenArtifacts returns the artifacts that hosts with these options leave,
// without starting one. The error matches ErrOptions, also when o says nothing
// about where artifacts are and Keep is not set: they end with their host then.
func OpenArtifacts(o Options) (*artifact.Store, error) {
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	if r.Output.Artifacts == "" {
		return nil, fmt.Errorf("%w: artifacts end with their host unless Output.Artifacts, Output.KeepArtifacts, PI_ARTIFACTS_DIR or PI_SESSION_FILE is set", ErrOptions)
	}
	return r.store(), nil
}

// Artifacts returns the artifacts of the host: outputs that were too long for
// their results. Its Open, ReadLines and Resolve take the artifact://N of a
// result.
func (h *Host) Artifacts() *artifact.Store { return h.hub.Artifacts() }

// fromEnvironment finds the folder of artifacts that the options leave open, "" when
// the environment names none either; dir is ~/.<brand>.
func (o OutputOptions) fromEnvironment(env []string, dir string) OutputOptions {
	session := home.Lookup(env, "PI_SESSION_FILE")
	switch named := home.Lookup(env, "PI_ARTIFACTS_DIR"); {
	case o.Artifacts != "":
	case named != "":
		o.Artifacts = named
	case strings.HasSuffix(session, ".jsonl"):
		o.Artifacts = strings.TrimSuffix(session, ".jsonl")
	case o.KeepArtifacts:
		o.Artifacts = filepath.Join(dir, "artifacts")
	}
	return o
}

func (r resolved) store() *artifact.Store {
	o := r.Output
	return artifact.New(artifact.Options{Dir: o.Artifacts, MaxBytes: o.MaxArtifact, MaxAge: o.MaxAge, MaxTotal: o.MaxTotal})
}

func (r resolved) hub() sinks.HubOptions {
	return sinks.HubOptions{
		Name: nameSinks, Brand: r.Brand, Store: r.store(), Budget: r.Output.budget(), Sinks: r.Sinks, Metrics: r.Metrics,
		Result: result.Options{MaxImageEdge: r.Output.MaxImageEdge},
	}
}

// limit gives the text of a result the shape that counts tokens, if that was
// asked for.
func (h *Host) limit(r messages.Result) messages.Result {
	if n := h.o.Output.tokens(); n > 0 {
		return result.Limit(r, n, h.Artifacts())
	}
	return r
}
