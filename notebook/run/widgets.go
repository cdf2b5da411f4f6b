package run

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// stateMIME is the member of metadata.widgets that holds what frontends show widgets by.
const stateMIME = "application/vnd.jupyter.widget-state+json"

// widgets follows the widgets of a run, as a frontend would: their state goes into the
// notebook's metadata, and what is shown while an Output widget captures goes into that
// in place of the cell. It belongs to the goroutine of its run.
type widgets struct {
	models map[string]*model // by comm
	size   int64             // of the states, about, in bytes
	most   int64
	dirty  bool // the metadata lacks something
	// capturing are the Output widgets that capture in the cell that runs, the innermost
	// one last.
	capturing []*model
	omitted   int64 // bytes of captured output that had no room, in this cell
}

// model is one widget.
type model struct {
	state   map[string]messages.RawJSON
	buffers []stateBuffer     // in the order in which their paths came
	outputs []notebook.Output // of an Output widget
	clears  bool              // with the next output
	capture bool              // it is an Output widget
}

// stateBuffer is bytes of a state, as the metadata has them.
type stateBuffer struct {
	Data     string           `json:"data"`
	Encoding string           `json:"encoding"`
	Path     messages.RawJSON `json:"path"`
}

// at finds the bytes at a path.
func at(path messages.RawJSON) func(stateBuffer) bool {
	return func(b stateBuffer) bool { return string(b.Path) == string(path) }
}

// buffer returns the place of the bytes at a path.
func (m *model) buffer(path messages.RawJSON) *stateBuffer {
	i := slices.IndexFunc(m.buffers, at(path))
	if i < 0 {
		i = len(m.buffers)
		m.buffers = append(m.buffers, stateBuffer{Path: path})
	}
	return &m.buffers[i]
}

func newWidgets(most int64) *widgets {
	return &widgets{models: make(map[string]*model), most: most}
}

// comm takes a message of a widget.
func (w *widgets) comm(e messages.Comm) {
	var data struct {
		State map[string]messages.RawJSON `json:"state"`
		Paths []messages.RawJSON          `json:"buffer_paths"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.State == nil {
		return // a message of its own, or the end of it: what it was stays to be shown
	}
	m := w.models[e.ID]
	if m == nil {
		m = &model{state: make(map[string]messages.RawJSON)}
		w.models[e.ID] = m
	}
	if e.Action == messages.CommOpen {
		m.capture = text(data.State["_model_module"]) == "@jupyter-widgets/output" && text(data.State["_model_name"]) == "OutputModel"
	}
	w.set(m, data.State, data.Paths, e.Buffers)
	if id, told := data.State["msg_id"]; told && m.capture && e.Action == messages.CommUpdate {
		w.captures(m, text(id) != "")
	}
}

// set changes a widget's state, unless there is no room for that.
func (w *widgets) set(m *model, state map[string]messages.RawJSON, paths []messages.RawJSON, buffers [][]byte) {
	grows := int64(0)
	for name, value := range state {
		grows += int64(len(name) + len(value) - len(m.state[name]))
	}
	for i := range min(len(paths), len(buffers)) {
		grows += int64(base64.StdEncoding.EncodedLen(len(buffers[i])))
		if old := slices.IndexFunc(m.buffers, at(paths[i])); old >= 0 {
			grows -= int64(len(m.buffers[old].Data))
		}
	}
	if w.size+grows > w.most {
		return
	}
	w.size += grows
	w.dirty = true
	maps.Copy(m.state, state)
	for i := range min(len(paths), len(buffers)) {
		*m.buffer(paths[i]) = stateBuffer{Data: base64.StdEncoding.EncodeToString(buffers[i]), Encoding: "base64", Path: paths[i]}
	}
}

// captures begins or ends the capturing of an Output widget.
func (w *widgets) captures(m *model, begins bool) {
	if begins {
		w.capturing = append(w.capturing, m)
		return
	}
	for i, other := range slices.Backward(w.capturing) {
		if other == m {
			w.capturing = slices.Delete(w.capturing, i, i+1)
			return
		}
	}
}

// takes gives output to the widget that captures it; false when none does. An update of
// a display is for wherever that is.
func (w *widgets) takes(e messages.Event) bool {
	if len(w.capturing) == 0 {
		return false
	}
	m := w.capturing[len(w.capturing)-1]
	switch e := e.(type) {
	case messages.ClearOutput:
		if m.clears = e.Wait; !e.Wait {
			m.outputs = nil
			w.shown(m)
		}
	case messages.Stream:
		w.output(m, notebook.NewStream(string(e.Name), e.Text), e.Size())
	case messages.Display:
		if e.Update {
			return false
		}
		w.output(m, notebook.NewDisplay(notebook.Bundle(e.Data), e.Metadata), e.Size())
	case messages.ExecuteResult:
		w.output(m, notebook.NewResult(e.ExecutionCount, notebook.Bundle(e.Data), e.Metadata), e.Size())
	case messages.Error:
		w.output(m, notebook.NewError(e.Name, e.Message, e.Traceback), e.Size())
	default:
		return false
	}
	return true
}

// output adds what a widget captured.
func (w *widgets) output(m *model, o notebook.Output, size int) {
	if w.size += int64(size); w.size > w.most {
		w.omitted += int64(size)
		return
	}
	if m.clears {
		m.outputs, m.clears = nil, false
	}
	if n := len(m.outputs); n > 0 && o.Type == notebook.Stream && m.outputs[n-1].Type == o.Type && m.outputs[n-1].Name == o.Name {
		m.outputs[n-1].Text += o.Text
	} else {
		m.outputs = append(m.outputs, o)
	}
	w.shown(m)
}

// shown notes what a widget shows in its state.
func (w *widgets) shown(m *model) {
	w.dirty = true
	m.state["outputs"] = nil // made when the metadata is
}

// ended is called when a cell has ended: no widget captures what later ones show. It
// returns how much of what was captured in it had no room, in bytes.
func (w *widgets) ended() (omitted int64) {
	omitted, w.omitted, w.capturing = w.omitted, 0, nil
	return omitted
}

// write puts the states into the notebook's metadata, beside those of widgets of earlier
// runs where only some cells run.
func (w *widgets) write(d *notebook.Document, keep bool) error {
	if !w.dirty {
		return nil
	}
	type entry struct {
		Name    messages.RawJSON            `json:"model_name"`
		Module  messages.RawJSON            `json:"model_module"`
		Version messages.RawJSON            `json:"model_module_version"`
		State   map[string]messages.RawJSON `json:"state"`
		Buffers []stateBuffer               `json:"buffers,omitempty"`
	}
	all := make(map[string]any)
	if before, ok := d.Metadata("widgets", stateMIME, "state"); ok && keep {
		var old map[string]messages.RawJSON
		if json.Unmarshal(before, &old) == nil {
			for id, state := range old {
				all[id] = state
			}
		}
	}
	for id, m := range w.models {
		if m.state["_model_name"] == nil {
			continue // no widget
		}
		if m.capture && m.outputs != nil {
			raw, err := outputsJSON(m.outputs)
			if err != nil {
				return err
			}
			m.state["outputs"] = raw
		} else if m.capture && m.state["outputs"] == nil {
			m.state["outputs"] = messages.RawJSON("[]")
		}
		all[id] = entry{Name: m.state["_model_name"], Module: m.state["_model_module"], Version: m.state["_model_module_version"], State: m.state, Buffers: m.buffers}
	}
	w.dirty = false
	if len(all) == 0 {
		return nil
	}
	return d.SetNotebookMetadata(map[string]any{"state": all, "version_major": 2, "version_minor": 0}, "widgets", stateMIME)
}

// outputsJSON is a list of outputs as a notebook has it.
func outputsJSON(outputs []notebook.Output) (messages.RawJSON, error) {
	d := notebook.New()
	if _, err := d.Append(notebook.NewCell{}); err != nil {
		return nil, err
	}
	if err := d.SetOutputs(notebook.At(0), 0, outputs...); err != nil {
		return nil, err
	}
	var cell struct {
		Outputs messages.RawJSON `json:"outputs"`
	}
	err := json.Unmarshal(d.Cell(0).JSON(), &cell)
	return cell.Outputs, err
}

// text is the text of a JSON string, "" of anything else.
func text(raw messages.RawJSON) string {
	var s string
	_ = json.Unmarshal(raw, &s) // "" then
	return s
}
