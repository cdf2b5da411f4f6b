package toolbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// shownInputs is how many wrong inputs the text of an error names.
const shownInputs = 5

// CheckInputs refuses inputs of a run that are not a JSON object, or not what the tool
// declares. None at all are an empty object.
func CheckInputs(t *toolspec.Tool, inputs messages.RawJSON) error {
	var object map[string]json.RawMessage
	if len(inputs) > 0 {
		if err := json.Unmarshal(inputs, &object); err != nil {
			return fmt.Errorf("the inputs are not a JSON object: %w", err)
		}
	}
	if wrong := t.CheckInputs(object); len(wrong) > 0 {
		return errors.New(strings.Join(toolspec.Lines(wrong, shownInputs), "; "))
	}
	return nil
}

// IsJSON reports whether data is one JSON value.
func IsJSON(data []byte) bool { return json.Valid(data) }
