package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/messages"
)

// runFlags are those of run and stream.
type runFlags struct {
	input   []string
	inputs  string
	timeout string
}

func (a *app) runCommand(stream bool) *cobra.Command {
	var f runFlags
	c := console.Command{
		Use:   "run ID [-i KEY=VALUE]... [--inputs JSON|@FILE|-]",
		Short: "Run a tool and print its outputs",
		Long: `Run a tool. Inputs that are not given have their defaults. The exit code is 0
when all is well, 1 when the tool failed, 2 when there is no such tool, 124 when
the time was up, 130 when cancelled, and 70 when the tool did not start or died.

A run whose time is up, or that is cancelled, is asked to end, and has 5 s for that
before its process is ended. Outputs that come in that time are shown, and may be a
part of what there would have been.`,
		Example: `  coppice tool run word-count -i text='to be or not to be' -i top=2
  coppice tool run word-count --inputs @inputs.json --json`,
		Args: oneTool("run"),
	}
	if stream {
		c = console.Command{
			Use:     "stream ID [-i KEY=VALUE]... [--inputs JSON|@FILE|-]",
			Short:   "Run a tool and print what it returns as it comes",
			Long:    "Like run, but each part of an output is printed when it comes: as text, or\nwith --json as one line of JSON each, the result last.",
			Example: "  coppice tool stream compound-interest -i years=5 -i pause=0.5",
			Args:    oneTool("stream"),
		}
	}
	c.Errors = a.failure
	c.Run = func(ctx context.Context, args []string) error { return a.run(ctx, f, args[0], stream) }
	cmd := c.Make()
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.input, "input", "i", nil, "an input as KEY=VALUE, or KEY=@FILE for one that is a file; may be repeated")
	flags.StringVar(&f.inputs, "inputs", "", "all inputs as a JSON object, @ and a file of one, or - for standard input")
	flags.StringVar(&f.timeout, "timeout", "", "how long the run may take, if less than the tool allows: seconds, or a time such as 5m")
	return cmd
}

func (a *app) run(ctx context.Context, f runFlags, id string, stream bool) error {
	timeout, err := console.ParseTimeout(f.timeout)
	if err != nil {
		return err
	}
	box, err := a.toolbox()
	if err != nil {
		return err
	}
	entry, err := box.Find(ctx, id)
	if err != nil {
		return err
	}
	inputs, err := a.inputs(ctx, entry.Tool, f)
	if err != nil {
		return err
	}
	waiting := a.StartProgress("running "+entry.ID, a.json)
	defer waiting.Done()
	emit := func(messages.ToolEvent) error { return nil }
	if stream {
		emit = func(e messages.ToolEvent) error {
			waiting.Done()
			if a.json {
				return a.WriteJSON(e)
			}
			a.Out.Print(eventText(e))
			return nil
		}
	}
	result, err := a.callTool(ctx, box.Dir(), launcher.Request{Tool: entry.ID, Inputs: inputs, Timeout: timeout}, emit)
	waiting.Done()
	switch {
	case err != nil && ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled, Err: errors.New("the run was cancelled")}
	case err != nil:
		return &console.Exit{Code: console.Lost, Err: err}
	}
	return a.showResult(entry.Tool, result, a.json, stream)
}

// callTool makes the run: at the server that runs for this folder, or here.
func (a *app) callTool(ctx context.Context, dir string, r launcher.Request, emit func(messages.ToolEvent) error) (messages.ToolResult, error) {
	if c := a.server(ctx, dir); c != nil {
		defer c.Close()
		return c.RunTool(ctx, r.Tool, client.RunTool{Inputs: r.Inputs, Timeout: r.Timeout.Seconds()}, emit)
	}
	l, end, err := a.launcher(ctx)
	if err != nil {
		return messages.ToolResult{}, err
	}
	defer end()
	return l.Stream(ctx, r, emit)
}

// showResult prints what a run has returned, and turns it into an exit code.
func (a *app) showResult(t *launcher.Spec, r messages.ToolResult, asJSON, streamed bool) error {
	if asJSON {
		if err := a.WriteJSON(r); err != nil {
			return err
		}
	} else {
		if !streamed || r.Error == nil {
			a.Out.Print(outputText(t, r.Outputs, streamed))
		}
		if len(r.Files) > 0 {
			a.Out.Lines("files in " + r.Artifacts + ": " + strings.Join(r.Files, ", "))
		}
		for _, w := range r.Warnings {
			a.Err.Lines("coppice: warning: " + w)
		}
		a.Err.Print(a.errorText(r.Error))
	}
	return console.Ended(r.Outcome)
}

// shownLines is how much of a tool's standard error is shown with an error.
const shownLines = 20

func (a *app) errorText(e *messages.ToolError) string {
	if e == nil {
		return ""
	}
	text := "coppice: " + e.Message + "\n"
	if e.Hint != "" {
		text += "  " + a.here(e.Hint) + "\n"
	}
	lines := strings.Split(strings.TrimRight(e.Stderr, "\n"), "\n")
	if e.Stderr != "" {
		text += "  standard error of the tool:\n"
		for _, l := range lines[max(0, len(lines)-shownLines):] {
			text += "  | " + l + "\n"
		}
	}
	return text
}

// outputText is the outputs for people; of what was streamed only the rest.
func outputText(t *launcher.Spec, outputs json.RawMessage, streamed bool) string {
	var values map[string]json.RawMessage
	if json.Unmarshal(outputs, &values) != nil {
		return ""
	}
	var b strings.Builder
	for i := range t.Outputs {
		o := &t.Outputs[i]
		if v, there := values[o.Key]; there && (!streamed || !o.Streams()) {
			_, _ = fmt.Fprintf(&b, "%s: %s\n", o.Key, valueText(v))
		}
	}
	return b.String()
}

// valueText is a string as it is, and anything else as JSON.
func valueText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

func eventText(e messages.ToolEvent) string {
	if len(e.Value) == 0 {
		return ""
	}
	var s string
	if e.Append && json.Unmarshal(e.Value, &s) == nil {
		if e.Done {
			s += "\n"
		}
		return s // text that goes on
	}
	return e.Output + ": " + valueText(e.Value) + "\n"
}

// inputs puts the inputs of a run together.
func (a *app) inputs(ctx context.Context, t *launcher.Spec, f runFlags) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	text := []byte(f.inputs)
	switch file, isFile := strings.CutPrefix(f.inputs, "@"); {
	case f.inputs == "-":
		data, err := a.ReadInput()
		if err != nil {
			return nil, fmt.Errorf("read the inputs: %w", err)
		}
		text = []byte(data)
	case isFile:
		data, err := console.ReadText(ctx, file)
		if err != nil {
			return nil, console.Usagef("read the inputs: %w", err)
		}
		text = data
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, console.Usagef("--inputs is not a JSON object: %w", err)
		}
	}
	files := map[string][]json.RawMessage{} // of inputs that take several
	for _, kv := range f.input {
		key, value, ok := strings.Cut(kv, "=")
		i := slices.IndexFunc(t.Inputs, func(in launcher.Input) bool { return in.Key == key })
		switch {
		case !ok:
			return nil, console.Usagef("-i wants KEY=VALUE, not %q", kv)
		case i < 0:
			all[key] = inputValue("text", value) // it is refused below, with the others
			continue
		}
		in := &t.Inputs[i]
		if file, isFile := strings.CutPrefix(value, "@"); isFile && in.IsFile() {
			v, err := inputFile(ctx, file)
			if err != nil {
				return nil, err
			}
			if in.Multiple {
				files[key] = append(files[key], v)
			} else {
				all[key] = v
			}
			continue
		}
		all[key] = inputValue(in.Type, value)
	}
	for key, list := range files {
		v, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		all[key] = v
	}
	// The launcher looks at them too; here they are the command line's mistake.
	if wrong := t.CheckInputs(all); len(wrong) > 0 {
		return nil, console.Usagef("%s", strings.Join(texts(wrong), "; "))
	}
	return json.Marshal(all)
}

func texts(problems []launcher.Problem) []string {
	list := make([]string, 0, len(problems))
	for _, p := range problems {
		list = append(list, p.String())
	}
	return list
}

// inputFile is a file as an input has it.
func inputFile(ctx context.Context, name string) (json.RawMessage, error) {
	data, err := console.ReadText(ctx, name)
	if err != nil {
		return nil, console.Usagef("read an input: %w", err)
	}
	kind := mime.TypeByExtension(filepath.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	return json.Marshal(map[string]string{"filename": filepath.Base(name), "content_type": kind, "data": base64.StdEncoding.EncodeToString(data)})
}

// inputValue reads a value of the command line: JSON for the types that are not
// text, and text for what is no JSON.
func inputValue(kind, value string) json.RawMessage {
	switch kind {
	case "text", "textarea", "code", "markdown", "date", "time", "datetime", "colour", "autocomplete":
	default:
		if json.Valid([]byte(value)) {
			return json.RawMessage(value)
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`""`) // a string always has a form in JSON
	}
	return data
}

// since is a time ago, for people.
func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return time.Since(t).Round(time.Second).String()
}
