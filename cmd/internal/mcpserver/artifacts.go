package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/sinks/artifact"
)

// maxResource bounds what is read of an artifact as a resource, in bytes; the
// tool artifact_read reads the rest.
const maxResource = 1 << 20

type artifactArgs struct {
	Artifact string `json:"artifact" jsonschema:"artifact://N, as a result names it."`
	First    int64  `json:"first,omitempty" jsonschema:"First line, from 1; the beginning if it is left out."`
	Last     int64  `json:"last,omitempty" jsonschema:"Last line; the end if it is left out."`
}

type artifactPart struct {
	Artifact string `json:"artifact"`
	First    int64  `json:"first"`
	Last     int64  `json:"last"`
	More     bool   `json:"more" jsonschema:"There are lines in the range that did not fit."`
	Text     string `json:"text"`
}

// addArtifacts serves the outputs that were too long for their results: as
// resources, and by lines as a tool.
func (s *server) addArtifacts(m *mcp.Server) {
	no := false
	mcp.AddTool(m, &mcp.Tool{
		Name: "artifact_read", Title: "Read an artifact",
		Description: "Reads lines of the output that a result had to cut and kept as artifact://N. At most 50 KiB at a time.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, func(_ context.Context, _ *mcp.CallToolRequest, a artifactArgs) (*mcp.CallToolResult, artifactPart, error) {
		if a.First < 0 || a.Last < 0 {
			return nil, artifactPart{}, errors.New("artifact_read: lines are counted from 1")
		}
		part, err := s.o.Host.Artifacts().ReadLines(a.Artifact, artifact.Range{First: a.First, Last: a.Last})
		if err != nil {
			return nil, artifactPart{}, fmt.Errorf("artifact_read: %w", err)
		}
		return nil, artifactPart{a.Artifact, part.First, part.Last, part.More, string(part.Text)}, nil
	})
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "artifact", Title: "Output of a call", URITemplate: artifact.Scheme + "{id}", MIMEType: "text/plain",
		Description: "The whole output of a call whose result was cut, up to 1 MiB; the tool artifact_read reads any part.",
	}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		part, err := s.o.Host.Artifacts().ReadLines(r.Params.URI, artifact.Range{MaxBytes: maxResource})
		switch {
		case errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrBadID), errors.Is(err, artifact.ErrNoDirectory):
			return nil, mcp.ResourceNotFoundError(r.Params.URI)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", r.Params.URI, err)
		}
		text := string(part.Text)
		if part.More {
			text += fmt.Sprintf("\n[cut after line %d: artifact_read reads on]\n", part.Last)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: text}}}, nil
	})
}
