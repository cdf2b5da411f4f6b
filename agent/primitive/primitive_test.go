package primitive_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
)

func handler(_ context.Context, c *primitive.Call) (any, error) { return c.Args, nil }

// plain is a primitive that can be installed.
func plain(name string, params ...primitive.Parameter) primitive.Primitive {
	return primitive.Primitive{Name: name, Description: "does it", BestPractices: []string{"use it"}, NextSteps: []string{"go on"}, Parameters: params, Handler: handler}
}

func call(t *testing.T, r *primitive.Registry, name, arguments string) (string, error) {
	t.Helper()
	reply, err := r.Call(t.Context(), &primitive.Call{Name: name, Emit: func(string, any) {}}, json.RawMessage(arguments))
	return string(reply.Value), err
}

func TestArgumentsAreBoundAsPythonDoes(t *testing.T) {
	r := primitive.New()
	require.NoError(t, r.Install(primitive.Pack{Name: "p", Primitives: []primitive.Primitive{
		plain("two", primitive.Parameter{Name: "a", Type: "int"}, primitive.Parameter{Name: "b", Type: "str", Optional: true, Default: "'x'"}),
		plain("only", primitive.Parameter{Name: "a", Type: "int", Kind: primitive.PositionalOnly}),
		plain("only2", primitive.Parameter{Name: "a", Kind: primitive.PositionalOnly}, primitive.Parameter{Name: "b", Kind: primitive.PositionalOnly}),
		plain("many", primitive.Parameter{Name: "a"}, primitive.Parameter{Name: "rest", Type: "int", Kind: primitive.VarPositional}, primitive.Parameter{Name: "k", Kind: primitive.KeywordOnly, Optional: true}, primitive.Parameter{Name: "more", Type: "int", Kind: primitive.VarKeyword}),
		plain("schema", primitive.Parameter{Name: "a", Schema: json.RawMessage(`{"type":"integer","minimum":3}`)}),
		plain("nothing"),
	}}, false))
	for _, tt := range []struct{ name, arguments, want, err string }{
		{"p.two", `{"args":[1],"kwargs":{}}`, `{"a":1}`, ""},
		{"p.two", `{"args":[1,"y"]}`, `{"a":1,"b":"y"}`, ""},
		{"p.two", `{"kwargs":{"b":"y","a":1}}`, `{"a":1,"b":"y"}`, ""},
		{"p.two", `{"args":[1],"kwargs":{"a":2}}`, "", "got a twice"},
		{"p.two", `{}`, "", "missing argument a\nParameter requirements: a(int, required); b(str, optional, default='x')"},
		{"p.two", `{"args":["x"]}`, "", "a must be int"},
		{"p.two", `{"args":[1,"y",3]}`, "", "1 positional arguments too many"},
		{"p.two", `{"args":[1],"kwargs":{"c":2}}`, "", "unexpected argument c"},
		{"p.two", `[]`, "", "not an object with args and kwargs"},
		{"p.only", `{"kwargs":{"a":1}}`, `{"a":1}`, ""},
		{"p.only2", `{"kwargs":{"a":1,"b":2}}`, "", "a is positional only"},
		{"p.many", `{"args":[1,2,3],"kwargs":{"k":4,"z":5}}`, `{"a":1,"k":4,"more":{"z":5},"rest":[2,3]}`, ""},
		{"p.many", `{"args":[1]}`, `{"a":1,"more":{},"rest":[]}`, ""},
		{"p.many", `{"args":[1,"x"]}`, "", "rest[0] must be int"},
		{"p.many", `{"args":[1],"kwargs":{"z":"x"}}`, "", "z must be int"},
		{"p.schema", `{"args":[3]}`, `{"a":3}`, ""},
		{"p.schema", `{"args":[2]}`, "", "a must be as its schema says"},
		{"p.nothing", `{"args":[1]}`, "", "Parameter requirements: none"},
		{"p.none", `{}`, "", "there is no primitive p.none; runtime.list_primitives() lists"},
	} {
		got, err := call(t, r, tt.name, tt.arguments)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, "%s %s", tt.name, tt.arguments)
			var he *messages.HostError
			require.ErrorAs(t, err, &he)
			require.Contains(t, []string{"TypeError", "KeyError"}, he.Type)
			continue
		}
		require.NoError(t, err, "%s %s", tt.name, tt.arguments)
		require.JSONEq(t, tt.want, got)
	}
}

func FuzzBind(f *testing.F) {
	r := primitive.New()
	if err := r.Install(primitive.Pack{Name: "p", Primitives: []primitive.Primitive{
		plain("f", primitive.Parameter{Name: "a", Type: "int"}, primitive.Parameter{Name: "rest", Kind: primitive.VarPositional}, primitive.Parameter{Name: "more", Kind: primitive.VarKeyword}),
	}}, false); err != nil {
		f.Fatal(err)
	}
	f.Add(`{"args":[1,2],"kwargs":{"x":null}}`)
	f.Add(`{"args":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := call(t, r, "p.f", text)
		if err == nil {
			require.True(t, json.Valid([]byte(got)))
			return
		}
		var he *messages.HostError
		require.ErrorAs(t, err, &he)
	})
}

func TestSpecs(t *testing.T) {
	r := primitive.New()
	require.Equal(t, []string{"runtime.get_primitive_spec", "runtime.list_backends", "runtime.list_primitive_specs", "runtime.list_primitives"}, r.Names("", ""))
	require.NoError(t, r.Install(primitive.Pack{Name: "notes", Guidance: "for notes", Backend: 5, BackendName: "demo-backend", Primitives: []primitive.Primitive{
		plain("add", primitive.Parameter{Name: "text", Type: "str", Description: "what <it> says"}, primitive.Parameter{Name: "tags", Type: "list[str]", Kind: primitive.VarPositional}),
		plain("notes.drop"),
	}}, false))
	got, err := call(t, r, "list_primitives", `{"args":["notes."],"kwargs":{"contains":"d"}}`)
	require.NoError(t, err)
	require.JSONEq(t, `["notes.add","notes.drop"]`, got)
	got, err = call(t, r, "runtime.list_backends", `{}`)
	require.NoError(t, err)
	require.JSONEq(t, `["demo-backend"]`, got)

	got, err = call(t, r, "get_primitive_spec", `{"args":["notes.add"]}`)
	require.NoError(t, err)
	var text string
	require.NoError(t, json.Unmarshal([]byte(got), &text))
	require.True(t, strings.HasPrefix(text, "<primitive_spec>"), text)
	require.Contains(t, text, `<parameter name="text" type="str" required="true" kind="positional_or_keyword">what &lt;it&gt; says</parameter>`)
	require.Contains(t, text, `<best_practice index="1">use it</best_practice>`)
	require.NoError(t, xml.Unmarshal([]byte(text), new(struct {
		XMLName xml.Name `xml:"primitive_spec"`
	})))

	got, err = call(t, r, "get_primitive_spec", `{"args":["notes.add","dict"]}`)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"notes.add","description":"does it","input_type":"","output_type":"","output_parsing":"","parameters":[
		{"name":"text","type":"str","required":true,"kind":"positional_or_keyword","description":"what <it> says","schema":{"type":"string"}},
		{"name":"*tags","type":"list[str]","required":false,"kind":"var_positional","description":"","schema":{"type":"array","items":{"type":"string"}}}],
		"best_practices":["use it"]}`, got)

	got, err = call(t, r, "list_primitive_specs", `{"kwargs":{"names":["notes.drop","none"]}}`)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(got), &text))
	require.True(t, strings.HasPrefix(text, "<primitive_specs>\n  <primitive>\n    <name>notes.drop"), text)
	got, err = call(t, r, "list_primitive_specs", `{"kwargs":{"contains":"list_","format":"json"}}`)
	require.NoError(t, err)
	var specs []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got), &specs))
	require.Len(t, specs, 3)

	_, err = call(t, r, "get_primitive_spec", `{}`)
	require.ErrorContains(t, err, "Parameter requirements: name(str, optional")
	_, err = call(t, r, "get_primitive_spec", `{"args":["none"]}`)
	require.ErrorContains(t, err, "KeyError")
	_, err = call(t, r, "get_primitive_spec", `{"args":["notes.add"],"kwargs":{"format":"yaml"}}`)
	require.ErrorContains(t, err, "not yaml")

	reply, err := r.Call(t.Context(), &primitive.Call{Name: "notes.drop"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"go on"}, reply.NextSteps)
	require.Equal(t, "for notes", r.Packs()[0].Guidance)
}

func TestPacksThatCannotBeInstalled(t *testing.T) {
	r := primitive.New()
	require.NoError(t, r.Install(primitive.Pack{Name: "there", Backend: 1}, false))
	without := func(change func(*primitive.Primitive)) primitive.Pack {
		p := plain("f")
		change(&p)
		return primitive.Pack{Name: "p", Primitives: []primitive.Primitive{p}}
	}
	with := func(params ...primitive.Parameter) primitive.Pack {
		return primitive.Pack{Name: "p", Primitives: []primitive.Primitive{plain("f", params...)}}
	}
	for want, p := range map[string]primitive.Pack{
		"installed already":          {Name: "there"},
		"the name of a pack":         {Name: "1x"},
		"and not runtime":            {Name: "runtime"},
		"must be one word":           {Name: "p", BackendName: "a.b"},
		"another pack has a backend": {Name: "p", BackendName: "there", Backend: 2},
		"no description":             without(func(p *primitive.Primitive) { p.Description = " " }),
		"no best practices":          without(func(p *primitive.Primitive) { p.BestPractices = nil }),
		"no handler":                 without(func(p *primitive.Primitive) { p.Handler = nil }),
		"must be identifiers":        without(func(p *primitive.Primitive) { p.Name = "a-b" }),
		"two primitives p.f":         {Name: "p", Primitives: []primitive.Primitive{plain("f"), plain("p.f")}},
		"no usable name":             with(primitive.Parameter{Name: "_x"}),
		"comes too late":             with(primitive.Parameter{Name: "a", Kind: primitive.VarKeyword}, primitive.Parameter{Name: "b"}),
		"two parameters a":           with(primitive.Parameter{Name: "a"}, primitive.Parameter{Name: "a"}),
		"the schema of":              with(primitive.Parameter{Name: "a", Schema: json.RawMessage(`{"type":5}`)}),
	} {
		err := r.Install(p, false)
		require.ErrorIs(t, err, primitive.ErrPack, want)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, []string{"there"}, r.Backends())
}

// hooked counts what a backend hears.
type hooked struct {
	installed, cloned, closed, ended int
	cloneErr                         error
}

func (h *hooked) OnInstall(*primitive.Registry) error { h.installed++; return nil }
func (h *hooked) OnClose() error                      { h.closed++; return nil }
func (h *hooked) OnSessionEnd(messages.SessionKey)    { h.ended++ }

func (h *hooked) OnCallEnd(context.Context, primitive.CallEnd) error { return nil }
func (h *hooked) CloneForFork(primitive.Fork) (any, error) {
	h.cloned++
	return &hooked{}, h.cloneErr
}

func TestBackendsHearOfTheirLife(t *testing.T) {
	r := primitive.New()
	first, second, shared := &hooked{}, &hooked{}, 7
	uses := plain("who")
	uses.Handler = func(_ context.Context, c *primitive.Call) (any, error) {
		other, ok := c.GetBackend("shared")
		return []any{c.BackendName, ok, other, c.Backend == any(first), c.Backend == any(second)}, nil
	}
	pack := primitive.Pack{Name: "p", Backend: first, Primitives: []primitive.Primitive{uses}}
	require.NoError(t, r.Install(pack, false))
	require.NoError(t, r.Install(primitive.Pack{Name: "shared", Backend: shared}, false))
	require.NoError(t, r.Install(pack, true), "the same backend again is quiet")
	require.Equal(t, hooked{installed: 1}, *first)
	got, err := call(t, r, "p.who", `{}`)
	require.NoError(t, err)
	require.JSONEq(t, `["p",true,7,true,false]`, got)

	fork, err := r.Fork(primitive.Fork{ID: "fork_1"})
	require.NoError(t, err)
	got, err = call(t, fork, "p.who", `{}`)
	require.NoError(t, err)
	require.JSONEq(t, `["p",true,7,false,false]`, got, "a backend of its own")
	fork.SessionEnded(messages.SessionKey{})
	require.NoError(t, fork.Close())
	require.Equal(t, hooked{installed: 1, cloned: 1}, *first, "what the fork does is the copy's affair")

	pack.Backend = second
	require.NoError(t, r.Install(pack, true))
	require.Equal(t, hooked{installed: 1, cloned: 1, closed: 1}, *first)
	r.SessionEnded(messages.SessionKey{})
	require.Len(t, r.CallEnders(), 1)
	require.Equal(t, hooked{installed: 1, ended: 1}, *second)
	second.cloneErr = errors.New("no more")
	_, err = r.Fork(primitive.Fork{ID: "fork_2"})
	require.ErrorContains(t, err, `copy the backend "p" for fork fork_2: no more`)

	removed, err := r.Remove("p")
	require.NoError(t, err)
	require.True(t, removed)
	removed, err = r.Remove("p")
	require.NoError(t, err)
	require.False(t, removed)
	require.Equal(t, 1, second.closed)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.Equal(t, 1, second.closed)
}

// TestAMissingBackendIsNamed before the handler runs.
func TestAMissingBackendIsNamed(t *testing.T) {
	r := primitive.New()
	p := plain("f")
	p.Backend = "gone"
	require.NoError(t, r.Install(primitive.Pack{Name: "p", Primitives: []primitive.Primitive{p}}, false))
	_, err := call(t, r, "p.f", `{}`)
	require.ErrorContains(t, err, `RuntimeError: the backend "gone" of the primitive p.f is not installed`)
}
