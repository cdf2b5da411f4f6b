package toolcheck

import (
	"encoding/json"
	"time"
)

// Status is how a check, or all of them, went.
type Status string

// The statuses.
const (
	Pass Status = "pass"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// The checks, in their order.
const (
	FolderStructure        = "folder_structure"
	ToolJSONParses         = "tool_json_parses"
	SchemasCoherent        = "schemas_coherent"
	PyprojectOK            = "pyproject_ok"
	VenvExists             = "venv_exists"
	ToolSpawns             = "tool_spawns"
	SchemaMatchesDisk      = "schema_matches_disk"
	SampleRunSucceeds      = "sample_run_succeeds"
	OutputConforms         = "output_conforms"
	StreamingCheck         = "streaming_check"
	ReferenceFixturesMatch = "reference_fixtures_match"
	CleanShutdown          = "clean_shutdown"
)

// Names are the names of the twelve checks.
var Names = []string{
	FolderStructure, ToolJSONParses, SchemasCoherent, PyprojectOK, VenvExists, ToolSpawns,
	SchemaMatchesDisk, SampleRunSucceeds, OutputConforms, StreamingCheck, ReferenceFixturesMatch, CleanShutdown,
}

// Check is how one check went.
type Check struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	// Details are further lines, such as where two schemas differ.
	Details []string `json:"details,omitempty"`
	// Duration is how long it took.
	Duration time.Duration `json:"duration_ns"`
}

// Report is how all checks of a tool went.
type Report struct {
	ToolID    string    `json:"tool_id"`
	ToolPath  string    `json:"tool_path"`
	Timestamp time.Time `json:"timestamp"`
	// Overall is fail if a check failed, else warn if one warned, else pass.
	Overall Status  `json:"overall"`
	Checks  []Check `json:"checks"`
	// SampleInputs and SampleOutput are those of the sample run.
	SampleInputs json.RawMessage `json:"sample_inputs,omitempty"`
	SampleOutput json.RawMessage `json:"sample_output,omitempty"`
	// SpawnLog is the end of the process's standard error, without the values of
	// its secrets.
	SpawnLog string   `json:"spawn_log,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Check returns the check of a name.
func (r *Report) Check(name string) Check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return Check{Name: name, Status: Skip}
}

// add records a check.
func (r *Report) add(name string, began time.Time, status Status, message string, details ...string) Status {
	r.Checks = append(r.Checks, Check{Name: name, Status: status, Message: message, Details: details, Duration: time.Since(began)})
	if status == Warn {
		r.Warnings = append(r.Warnings, name+": "+message)
	}
	return status
}

// finish skips what was not done and sums up.
func (r *Report) finish(why string) {
	for _, name := range Names[len(r.Checks):] {
		r.add(name, time.Now(), Skip, why)
	}
	r.Overall = Pass
	for _, c := range r.Checks {
		switch {
		case c.Status == Fail:
			r.Overall = Fail
		case c.Status == Warn && r.Overall == Pass:
			r.Overall = Warn
		}
	}
}
