package toolproc

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// AutocompletePath is where a tool offers suggestions for an input; endpoint is
// the input's, query what was typed.
func AutocompletePath(endpoint, query string) string {
	endpoint = strings.TrimPrefix(strings.TrimPrefix(endpoint, "/"), "autocomplete/")
	return "/autocomplete/" + escape(endpoint) + "?q=" + url.QueryEscape(query)
}

// FilePath is where a tool offers a file of a run.
func FilePath(run, name string) string { return "/files/" + url.PathEscape(run) + "/" + escape(name) }

// escape escapes the parts of a path.
func escape(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// Fetch gets something of a tool other than a run. The error of an answer with
// status 404 is of kind not_found.
func (p *Process) Fetch(ctx context.Context, path string) (*messages.ToolFetched, Answer) {
	c := &call{before: p.stderr.Written()}
	resp, err := p.request(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, p.broken(ctx, c, err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := p.readBody(resp)
	what, _, _ := strings.Cut(path, "?")
	switch {
	case err != nil:
		return nil, p.broken(ctx, c, err)
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed:
		return nil, Answer{Error: &messages.ToolError{
			Kind: messages.ToolErrorNotFound, Status: resp.StatusCode, Message: fmt.Sprintf("the tool has no %s: %s", what, p.env.Mask(detailOf(data))),
		}}
	case resp.StatusCode != http.StatusOK:
		return nil, Answer{Error: p.explain(c, resp.StatusCode, data)}
	}
	return &messages.ToolFetched{ContentType: resp.Header.Get("Content-Type"), Data: data}, Answer{}
}
