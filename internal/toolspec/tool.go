package toolspec

import (
	"encoding/json"
	"maps"
)

// FileName is the file that makes a folder a tool.
const FileName = "tool.json"

// Tool is a parsed tool.json.
type Tool struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`
	// Category may have a slash: "science/physics".
	Category         string `json:"category"`
	Icon             string `json:"icon"`
	Package          string `json:"package"`
	WorkspaceDefault string `json:"workspace_default"`
	// Layout is form, chat or split.
	Layout string `json:"layout"`
	// WarmKeepSeconds is how long the process is kept after its last run.
	WarmKeepSeconds int `json:"warm_keep_seconds"`
	// MaxMemoryMB bounds the memory of the process; 0 does not.
	MaxMemoryMB int `json:"max_memory_mb"`
	// MaxOpenFiles bounds the files and connections that the process, and each that
	// it starts, has open at once, on Linux; 0 does not.
	MaxOpenFiles int `json:"max_open_files"`
	// MaxRuntimeSeconds bounds one run, by the clock on the wall. Nothing bounds the
	// processor time: that of a process that is kept adds up over its runs.
	MaxRuntimeSeconds int      `json:"max_runtime_seconds"`
	Secrets           []Secret `json:"secrets"`
	SchemaVersion     string   `json:"schema_version"`
	// Concurrent says that runs may overlap.
	Concurrent bool `json:"concurrent"`
	// ValidatorTimeoutOverride is how many seconds the sample run of the
	// validator may take; nil: as long as any run.
	ValidatorTimeoutOverride *int `json:"validator_timeout_override"`
	RequiresDataPersistence  bool `json:"requires_data_persistence"`
	ProvidesFileEndpoint     bool `json:"provides_file_endpoint"`
	ProvidesAutocomplete     bool `json:"provides_autocomplete"`
	Archived                 bool `json:"archived"`
	// InputTransport is json or multipart.
	InputTransport string `json:"input_transport"`
	// RetainRuns is of how many runs the files are kept.
	RetainRuns int      `json:"retain_runs"`
	Tags       []string `json:"tags"`
	// PinnedWarm asks that the tool is pinned when the launcher starts.
	PinnedWarm bool `json:"pinned_warm"`
	// Entrypoint is the program, in the tool's folder.
	Entrypoint string   `json:"entrypoint"`
	Inputs     []Input  `json:"inputs"`
	Outputs    []Output `json:"outputs"`

	// Raw is the document as it is on the disk.
	Raw json.RawMessage `json:"-"`
}

// Secret is a variable that the tool's .env file is to set.
type Secret struct {
	Key         string `json:"key"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

// Input is one value that a run is given.
type Input struct {
	Key         string          `json:"key"`
	Label       string          `json:"label"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Required    bool            `json:"required"`
	Group       string          `json:"group"`
	ShowIf      *Condition      `json:"show_if"`

	Min     *float64 `json:"min"`
	Max     *float64 `json:"max"`
	Step    *float64 `json:"step"`
	Range   bool     `json:"range"`
	Options []Option `json:"options"`
	// MaxLength bounds a text, in characters; nil: no bound.
	MaxLength *int            `json:"max_length"`
	Multiple  bool            `json:"multiple"`
	Schema    json.RawMessage `json:"schema"`
	Columns   []Column        `json:"columns"`
	Endpoint  string          `json:"endpoint"`
}

// Condition says when an input is shown.
type Condition struct {
	Key    string          `json:"key"`
	Equals json.RawMessage `json:"equals"`
}

// Column is one column of a table.
type Column struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Type  string `json:"type"`
}

// Option is one choice. In the file it is a plain value or an object.
type Option struct {
	Value any    `json:"value"`
	Label string `json:"label"`
}

// UnmarshalJSON reads either form.
func (o *Option) UnmarshalJSON(data []byte) error {
	type plain Option
	if len(data) > 0 && data[0] == '{' {
		return json.Unmarshal(data, (*plain)(o))
	}
	return json.Unmarshal(data, &o.Value)
}

// Output is one value that a run returns.
type Output struct {
	Key         string `json:"key"`
	Label       string `json:"label"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Caption     string `json:"caption"`
	Unit        string `json:"unit"`
	Streaming   bool   `json:"streaming"`
	Layout      string `json:"layout"`
	Format      string `json:"format"`

	DefaultExportFormat    string   `json:"default_export_format"`
	SupportedExportFormats []string `json:"supported_export_formats"`
}

// The defaults of tool.json.
const (
	defaultWarmKeep   = 300
	defaultMemoryMB   = 512
	defaultRuntime    = 60
	defaultRetainRuns = 100
)

// defaults is a Tool with nothing but its defaults.
func defaults() Tool {
	return Tool{
		Layout: "form", WarmKeepSeconds: defaultWarmKeep, MaxMemoryMB: defaultMemoryMB, MaxRuntimeSeconds: defaultRuntime,
		SchemaVersion: "1.0", Concurrent: true, InputTransport: "json", RetainRuns: defaultRetainRuns, Entrypoint: "main.py",
	}
}

// UnmarshalJSON fills in that an input is required unless it says otherwise.
func (in *Input) UnmarshalJSON(data []byte) error {
	type plain Input
	in.Required = true
	return json.Unmarshal(data, (*plain)(in))
}

// Streams reports whether a run of the tool is read as a stream: an output says
// so, or is of a type that grows while the tool runs.
func (t *Tool) Streams() bool {
	for i := range t.Outputs {
		if t.Outputs[i].Streams() {
			return true
		}
	}
	return false
}

// Streams reports whether the output comes while the run goes on.
func (o *Output) Streams() bool {
	return o.Streaming || o.Type == "stream_text" || o.Type == "log" || o.Type == "progress"
}

// Output returns the output of a key, nil if there is none.
func (t *Tool) Output(key string) *Output {
	for i := range t.Outputs {
		if t.Outputs[i].Key == key {
			return &t.Outputs[i]
		}
	}
	return nil
}

// Input returns the input of a key, nil if there is none.
func (t *Tool) Input(key string) *Input {
	for i := range t.Inputs {
		if t.Inputs[i].Key == key {
			return &t.Inputs[i]
		}
	}
	return nil
}

// IsFile reports whether the input is a file: {"filename", "data"} with the data
// in base64, or a data URL.
func (in *Input) IsFile() bool { return in.Type == "file" || in.Type == "image" || in.Type == "audio" }

// FillInputs returns inputs with the defaults of what is missing.
func (t *Tool) FillInputs(inputs map[string]json.RawMessage) map[string]json.RawMessage {
	full := make(map[string]json.RawMessage, len(inputs))
	for i := range t.Inputs {
		if in := &t.Inputs[i]; len(in.Default) > 0 && string(in.Default) != "null" {
			full[in.Key] = in.Default
		}
	}
	maps.Copy(full, inputs)
	return full
}
