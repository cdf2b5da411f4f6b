package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

// spec is the OpenAPI document, and what of it was seen.
type spec struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		RequestBody *struct {
			Required bool             `json:"required"`
			Content  map[string]media `json:"content"`
		} `json:"requestBody"`
		Responses map[string]answer          `json:"responses"`
		Schemas   map[string]json.RawMessage `json:"schemas"`
		Security  *[]any                     `json:"security"` // none: the document's own
	} `json:"paths"`
	Components struct {
		Responses map[string]answer          `json:"responses"`
		Schemas   map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`

	mu   sync.Mutex
	seen map[string]bool // "METHOD path status"; guarded by mu
}

type answer struct {
	Ref string `json:"$ref"`
	// Fleet: a server that is in no fleet never answers so.
	Fleet   bool             `json:"x-fleet"`
	Content map[string]media `json:"content"`
}

type media struct {
	Schema *struct {
		Ref  string `json:"$ref"`
		Type string `json:"type"`
	} `json:"schema"`
	// Data is the schema of the data of each event of a stream.
	Data *struct {
		Ref string `json:"$ref"`
	} `json:"x-data"`
}

func load(t *testing.T) *spec {
	t.Helper()
	data, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	s := &spec{seen: map[string]bool{}}
	require.NoError(t, json.Unmarshal(data, s))
	for _, methods := range s.Paths {
		for _, operation := range methods {
			for status, a := range operation.Responses {
				if name, ok := strings.CutPrefix(a.Ref, "#/components/responses/"); ok {
					require.Contains(t, s.Components.Responses, name)
					operation.Responses[status] = s.Components.Responses[name]
				}
			}
		}
	}
	return s
}

// schemas is an object with a property by each schema of the document: that takes seconds of
// processor, and is made once for all tests.
var schemas = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	properties := map[string]any{}
	for name := range document.Components.Schemas {
		properties[name] = map[string]any{"$ref": "#/$defs/" + name}
	}
	data, err = json.Marshal(map[string]any{"$defs": document.Components.Schemas, "properties": properties, "additionalProperties": false})
	if err != nil {
		return nil, err
	}
	data = bytes.ReplaceAll(data, []byte(schemaPrefix), []byte("#/$defs/"))
	var js jsonschema.Schema
	if err := json.Unmarshal(data, &js); err != nil {
		return nil, err
	}
	return js.Resolve(nil)
})

// schemaPrefix is how the document refers to its schemas.
const schemaPrefix = "#/components/schemas/"

// holds reports why data is not what a schema says.
func (s *spec) holds(m media, data []byte) error {
	ref := ""
	switch {
	case m.Data != nil:
		ref = m.Data.Ref
	case m.Schema != nil:
		ref = m.Schema.Ref
	}
	if ref == "" {
		return nil
	}
	name, ok := strings.CutPrefix(ref, schemaPrefix)
	if !ok {
		return fmt.Errorf("%s is no schema of the document", ref)
	}
	all, err := schemas()
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("%s: %w in %.200q", ref, err, data)
	}
	if err := all.Validate(map[string]any{name: v}); err != nil {
		return fmt.Errorf("%s: %w in %.2000s", ref, err, data)
	}
	return nil
}

// find is the path of the document that a path belongs to.
func (s *spec) find(path string) string {
	parts := strings.Split(path, "/")
next:
	for template := range s.Paths {
		want := strings.Split(template, "/")
		if len(want) != len(parts) {
			continue
		}
		for i, w := range want {
			if w != parts[i] && !strings.HasPrefix(w, "{") {
				continue next
			}
		}
		return template
	}
	return ""
}

// checked carries requests, and holds them and their answers against the
// document.
type checked struct {
	spec *spec
	t    *testing.T
	http.RoundTripper
}

// RoundTrip makes a request.
func (c *checked) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil && r.Header.Get("Expect") == "" {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if problem := c.check(r, sent, resp); problem != nil {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, problem)
	}
	return resp, nil
}

func (c *checked) check(r *http.Request, sent []byte, resp *http.Response) error {
	if resp.StatusCode == http.StatusBadRequest && strings.Contains(r.URL.Path, "..") {
		return nil // refused before the path is looked at
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		c.spec.saw(r.Method + " " + c.spec.find(r.URL.EscapedPath()) + " 101")
		return nil
	}
	template := c.spec.find(r.URL.EscapedPath())
	operation, ok := c.spec.Paths[template][strings.ToLower(r.Method)]
	if !ok {
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized {
			return nil
		}
		return fmt.Errorf("status %d of what the document does not have", resp.StatusCode)
	}
	status := fmt.Sprint(resp.StatusCode)
	answer, ok := operation.Responses[status]
	if !ok {
		return fmt.Errorf("status %s is not in the document", status)
	}
	c.spec.saw(r.Method + " " + template + " " + status)
	if operation.RequestBody != nil && resp.StatusCode < 300 && (operation.RequestBody.Required || len(sent) > 0) {
		if err := c.spec.holds(operation.RequestBody.Content["application/json"], sent); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	m, ok := answer.Content[kind]
	if _, any := answer.Content["*/*"]; any {
		return nil
	}
	switch {
	case len(answer.Content) == 0:
		return nil
	case !ok:
		return fmt.Errorf("the kind %q of status %s is not in the document", kind, status)
	case kind == "text/event-stream":
		resp.Body = &checkedStream{ReadCloser: resp.Body, c: c, m: m}
		return nil
	case kind != "application/json":
		return nil
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(data), resp.Body}
	return c.spec.holds(m, data)
}

// checkedStream checks each event that is read.
type checkedStream struct {
	io.ReadCloser
	c    *checked
	m    media
	rest []byte
}

// Read reads the stream.
func (s *checkedStream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.rest = append(s.rest, p[:n]...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		if i < 0 {
			return n, err
		}
		if data, ok := bytes.CutPrefix(s.rest[:i], []byte("data: ")); ok {
			if problem := s.c.spec.holds(s.m, data); problem != nil {
				s.c.t.Errorf("an event: %v", problem)
			}
		}
		s.rest = s.rest[i+1:]
	}
}

func (s *spec) saw(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = true
}

// missing lists what the document has and no test saw.
func (s *spec) missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for path, methods := range s.Paths {
		for method, operation := range methods {
			for status, a := range operation.Responses {
				if a.Fleet {
					continue
				}
				if name := strings.ToUpper(method) + " " + path + " " + status; !s.seen[name] {
					list = append(list, name)
				}
			}
		}
	}
	return list
}
