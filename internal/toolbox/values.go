package toolbox

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// CheckInputs refuses inputs of a run that are not a JSON object. None at all are
// fine.
func CheckInputs(inputs messages.RawJSON) error {
	if len(inputs) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(inputs, &object); err != nil {
		return fmt.Errorf("the inputs are not a JSON object: %w", err)
	}
	return nil
}

// IsJSON reports whether data is one JSON value.
func IsJSON(data []byte) bool { return json.Valid(data) }
