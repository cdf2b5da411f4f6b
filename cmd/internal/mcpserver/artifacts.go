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

// maxPart bounds what artifact_read returns at once, in bytes.
const maxPart = 50 << 10

type artifactArgs struct {
	Artifact string `json:"artifact" jsonschema:"artifact://N, as a result names it."`
	First    int64  `json:"first,omitempty" jsonschema:"First line, from 1; the beginning if it is left out."`
	Last     int64  `json:"last,omitempty" jsonschema:"Last line; the end if it is left out."`
	Offset   *int64 `json:"offset,omitempty" jsonschema:"Where to begin, in bytes from 0, in place of first and last: the next_offset of another call reads on where that ended, also in the middle of a line."`
	Bytes    int64  `json:"bytes,omitempty" jsonschema:"How many bytes to read; 51200 if it is left out, which is the most."`
	Search   string `json:"search,omitempty" jsonschema:"A text to look for, as it is, in place of reading: the answer has the lines and offsets where it is, the first 50 from offset on."`
}

type artifactPart struct {
	Artifact   string          `json:"artifact"`
	First      int64           `json:"first,omitempty"`
	Last       int64           `json:"last,omitempty"`
	More       bool            `json:"more" jsonschema:"There is more that did not fit."`
	Offset     int64           `json:"offset" jsonschema:"Where text begins, in bytes."`
	NextOffset int64           `json:"next_offset,omitempty" jsonschema:"The offset that reads or searches on, when there is more."`
	Size       int64           `json:"size,omitempty" jsonschema:"How many bytes the whole artifact has."`
	Text       string          `json:"text"`
	Matches    []artifactMatch `json:"matches,omitempty"`
}

type artifactMatch struct {
	Line   int64  `json:"line"`
	Offset int64  `json:"offset"`
	Text   string `json:"text" jsonschema:"What was found with what stands beside it."`
}

const artifactDescription = "Reads the output that a result had to cut and kept as artifact://N: lines from first to last, or bytes from offset on, at most 50 KiB at a time. " +
	"When there is more, next_offset is the offset that reads on, so that all of a line can be read, however long it is. With search it finds a text in it."

// readArtifact serves the tool artifact_read.
func (s *server) readArtifact(ctx context.Context, _ *mcp.CallToolRequest, a artifactArgs) (*mcp.CallToolResult, artifactPart, error) {
	store, out := s.o.Host.Artifacts(), artifactPart{Artifact: a.Artifact}
	if a.First < 0 || a.Last < 0 || a.Bytes < 0 || a.Offset != nil && *a.Offset < 0 {
		return nil, out, errors.New("artifact_read: lines are counted from 1, and bytes from 0")
	}
	if a.Offset != nil && (a.First > 0 || a.Last > 0) || a.Search != "" && (a.First > 0 || a.Last > 0) {
		return nil, out, errors.New("artifact_read: name lines with first and last, or bytes with offset, not both")
	}
	var offset int64
	if a.Offset != nil {
		offset = *a.Offset
	}
	if a.Search != "" {
		found, err := store.Search(ctx, a.Artifact, a.Search, offset, 0)
		if err != nil {
			return nil, out, fmt.Errorf("artifact_read: %w", err)
		}
		for _, m := range found.Matches {
			out.Matches = append(out.Matches, artifactMatch{m.Line, m.Offset, m.Around})
		}
		out.Offset, out.NextOffset, out.More = offset, found.Next, found.Next > 0
		return nil, out, nil
	}
	var part artifact.Part
	var err error
	if size := min(a.Bytes, maxPart); a.Offset != nil {
		part, err = store.ReadBytes(a.Artifact, offset, size)
	} else {
		part, err = store.ReadLines(a.Artifact, artifact.Range{First: a.First, Last: a.Last, MaxBytes: size})
	}
	if err != nil {
		return nil, out, fmt.Errorf("artifact_read: %w", err)
	}
	out.First, out.Last, out.More, out.Text = part.First, part.Last, part.More, string(part.Text)
	out.Offset, out.Size = part.Begin, part.Size
	if part.More {
		out.NextOffset = part.End
	}
	return nil, out, nil
}

// addArtifacts serves the outputs that were too long for their results: as
// resources, and in parts as a tool.
func (s *server) addArtifacts(m *mcp.Server) {
	no := false
	mcp.AddTool(m, &mcp.Tool{
		Name: "artifact_read", Title: "Read an artifact", Description: artifactDescription,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, s.readArtifact)
	m.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "artifact", Title: "Output of a call", URITemplate: artifact.Scheme + "{id}", MIMEType: "text/plain",
		Description: "The whole output of a call whose result was cut, up to 1 MiB; the tool artifact_read reads any part of it, by lines or by bytes.",
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
			text += fmt.Sprintf("\n[cut here, %d of %d bytes: artifact_read reads on with offset %[1]d]\n", part.End, part.Size)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: text}}}, nil
	})
}
