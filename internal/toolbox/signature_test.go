package toolbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// TestSignature: whoever writes code that calls a tool sees what it takes.
func TestSignature(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ inputs, signature, lines string }{
		"none": {``, "()", ""},
		"some": {
			`{"key":"text","label":"Text","type":"text","default":"he\"llo","description":"What is\n shouted","max_length":9},
			{"key":"times","label":"Times","type":"number","min":1,"max":1000000},
			{"key":"loud","label":"Loud","type":"toggle","default":false},
			{"key":"how","label":"How","type":"select","options":["a",{"value":2,"label":"Two"}],"required":false}`,
			`(text: str = "he\"llo", times: float, loud: bool = False, how = ...)`,
			"text: str = \"he\\\"llo\"  Text: What is shouted (at most 9 characters)\n" +
				"times: float  Times (from 1 to 1000000)\n" +
				"loud: bool = False  Loud\n" +
				`how = ...  How (of "a", 2)`,
		},
		"of other types": {
			`{"key":"r","label":"R","type":"slider","min":0,"max":9.5,"range":true,"default":[1,2.5]},
			{"key":"tags","label":"Tags","type":"tags","default":null},
			{"key":"doc","label":"Doc","type":"file","multiple":true,"required":false},
			{"key":"any","label":"Any","type":"json","default":{"b":null,"a":[true]}}`,
			`(r: list[float] = [1, 2.5], tags: list[str] = ..., doc: list[dict] = ..., any = {"a": [True], "b": None})`,
			"r: list[float] = [1, 2.5]  R (from 0 to 9.5)\n" +
				"tags: list[str] = ...  Tags\n" +
				"doc: list[dict] = ...  Doc ({\"filename\": \"a.csv\", \"data\": \"<base64>\"}, or a data URL)\n" +
				`any = {"a": [True], "b": None}  Any`,
		},
		"keys that Python cannot say": {
			`{"key":"from","label":"From","type":"text"},{"key":"a-b","label":"A","type":"number","default":1e300},{"key":"inner","label":"I","type":"hidden","default":1}`,
			"()",
			"\"from\": str  From\n\"a-b\": float = 1e+300  A",
		},
		"a long default": {
			`{"key":"text","label":"Text","type":"textarea","default":"` + "0123456789012345678901234567890123456789012345678901234567890" + `"}`,
			"(text: str = ...)", "text: str = ...  Text",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, err := toolspec.Parse([]byte(`{"id":"x","name":"X","outputs":[],"inputs":[` + tc.inputs + `]}`))
			require.NoError(t, err)
			require.Equal(t, tc.signature, toolbox.Signature(tool))
			require.Equal(t, tc.lines, toolbox.InputLines(tool))
		})
	}
}
