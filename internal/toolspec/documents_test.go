package toolspec_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolspec"
)

// typesOf are the types of inputs or outputs, as the error about one that is none of them lists
// them, sorted.
func typesOf(t *testing.T, inputs, outputs string) []string {
	t.Helper()
	_, err := toolspec.Parse([]byte(`{"id":"x","name":"X","inputs":[` + inputs + `],"outputs":[` + outputs + `]}`))
	require.Error(t, err)
	_, list, found := strings.Cut(err.Error(), "; the types are ")
	require.True(t, found, err.Error())
	return strings.Split(list, ", ")
}

// TestTheTypesAreDocumented: whoever writes a tool.json finds each type of an input, and no other,
// in the page about tools, in the README of a new tool and in the help of validate.
func TestTheTypesAreDocumented(t *testing.T) {
	none := `{"key":"a","label":"A","type":"none"}`
	inputs, outputs := typesOf(t, none, ""), typesOf(t, "", none)
	require.Len(t, inputs, 28)
	require.Len(t, outputs, 39)
	word := regexp.MustCompile(`[a-z_]+`)
	code := regexp.MustCompile("`[a-z_]+`")
	for name, tc := range map[string]struct {
		file, from, to string
		words          *regexp.Regexp
		want           []string
	}{
		"the page":             {"../../docs/tools.md", "| types of inputs ", "\nThe types of outputs", nil, inputs},
		"the page, of outputs": {"../../docs/tools.md", "how a value is shown: ", ".\n\n", code, outputs},
		"a new tool":           {"../toolnew/template/README.md", "an input is one of ", ".", code, inputs},
		"the help":             {"../../docs/reference/commands.md", "of an input in tool.json is one of ", ".", word, inputs},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(tc.file)
			require.NoError(t, err)
			_, text, found := strings.Cut(string(data), tc.from)
			require.True(t, found, tc.from)
			text, _, found = strings.Cut(text, tc.to)
			require.True(t, found, tc.to)
			var have []string
			if tc.words == nil { // a table, whose first column has them
				for _, line := range strings.Split(text, "\n")[2:] {
					if cells := strings.Split(line, "|"); len(cells) > 1 {
						have = append(have, code.FindAllString(cells[1], -1)...)
					}
				}
			} else {
				have = tc.words.FindAllString(text, -1)
			}
			for i := range have {
				have[i] = strings.Trim(have[i], "`")
			}
			have = slices.DeleteFunc(have, func(s string) bool { return s == "and" })
			require.ElementsMatch(t, tc.want, have)
		})
	}
}
