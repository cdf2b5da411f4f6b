package jupyterapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// execution is an execute_request.
type execution struct {
	Code         string            `json:"code"`
	Silent       bool              `json:"silent"`
	StoreHistory *bool             `json:"store_history"`
	Expressions  map[string]string `json:"user_expressions"`
	AllowStdin   bool              `json:"allow_stdin"`
	StopOnError  *bool             `json:"stop_on_error"`
}

// counted reports whether the code gets a number and stands in In and Out.
func (e execution) counted() bool { return !e.Silent && (e.StoreHistory == nil || *e.StoreHistory) }

// execute runs code.
func (k *kernel) execute(j job) {
	var o execution
	if err := json.Unmarshal(j.Content, &o); err != nil {
		k.reply(j, failure("ValueError", "the request cannot be read: "+err.Error(), nil))
		return
	}
	k.mu.Lock()
	n := k.count // kernels count what is hidden, too, and Jupyter does not
	k.mu.Unlock()
	if o.counted() {
		n++
	}
	if !o.Silent {
		k.publish(j.Header, "execute_input", map[string]any{"code": o.Code, "execution_count": n})
	}
	payload, output := []any{}, (*string)(nil)
	var problem *problemReply
	k.mu.Lock()
	process := k.past.before + 1
	k.mu.Unlock()
	if name := asksFor(o.Code); name != "" && speaksPython(k.spec) {
		payload, problem = k.page(j, name)
	} else {
		output, problem = k.run(j, o, n)
	}
	if o.counted() {
		k.mu.Lock()
		if k.past.before+1 == process { // it was not restarted meanwhile, which counts from 1 again
			k.count = n
		}
		k.past.keep(entry{process, n, o.Code, output})
		k.mu.Unlock()
		k.a.counted()
	}
	if problem != nil {
		k.reply(j, struct {
			problemReply
			Count int `json:"execution_count"`
		}{*problem, n})
		if o.StopOnError == nil || *o.StopOnError {
			k.abort()
		}
		return
	}
	values := map[string]any{}
	for name, expression := range o.Expressions {
		values[name] = k.evaluate(k.life, expression)
	}
	k.reply(j, map[string]any{"status": "ok", "execution_count": n, "user_expressions": values, "payload": payload})
}

// run makes the call, and shows what it shows. It returns the text of the result, nil if
// there was none, and how it failed, nil if it did not.
func (k *kernel) run(j job, o execution, n int) (output *string, problem *problemReply) {
	printed := streams{publish: func(name, text string) {
		k.publish(j.Header, "stream", map[string]string{"name": name, "text": text})
	}}
	defer printed.flush()
	fail := func(f problemReply) {
		problem = &f
		printed.flush()
		k.publish(j.Header, "error", f.raised)
	}
	defer k.audience.answered("")
	if !o.Silent {
		printed.tell(k.tidings())
	}
	for e, err := range k.s.Stream(k.life, coppice.Request{
		Cells: []messages.Cell{{Code: o.Code}}, Timeout: coppice.NoTimeout, Count: o.counted(), AllowStdin: o.AllowStdin, Comms: true,
	}) {
		if err != nil {
			fail(hostFailure(err))
			return output, problem
		}
		switch e := e.(type) {
		case messages.Error:
			fail(failure(e.Name, e.Message, e.Traceback))
		case messages.Stream:
			printed.add(string(e.Name), e.Text)
		case messages.Comm:
			printed.flush()
			k.told(j, e)
		case messages.InputRequest:
			printed.flush()
			m := k.make(stdin, "input_request", j.Header, map[string]any{"prompt": e.Prompt, "password": e.Password})
			k.audience.ask(j.from, e.ID, m)
		case messages.Final:
			if k.woke(e.Result.Restored); !o.Silent {
				printed.tell(k.tidings())
			}
			for _, notice := range e.Result.Notices {
				if !strings.HasPrefix(notice, messages.BusyNotice) { // which is for those who run the host
					printed.tell(notice)
				}
			}
			if f, failed := ended(e.Result); failed && problem == nil {
				fail(f)
			}
		default:
			if r, ok := e.(messages.ExecuteResult); ok {
				if text, ok := r.Data.Text(messages.MIMEPlain); ok {
					output = &text
				}
			}
			if kind, content := shown(e, n); kind != "" && !(o.Silent && kind == "execute_result") {
				printed.flush()
				k.publish(j.Header, kind, content)
			}
		}
	}
	return output, problem
}

// told hands on what an object of the kernel says while it serves a request. Where that names
// the request, clients read its ID: an Output widget takes what is shown for that.
func (k *kernel) told(j job, e messages.Comm) {
	kind, content := commKinds[e.Action], commContent{ID: e.ID, Data: json.RawMessage(e.Data)}
	if len(content.Data) == 0 {
		content.Data = none
	}
	if id, err := json.Marshal(j.ID); err == nil {
		content.Data = bytes.ReplaceAll(content.Data, []byte(`"`+messages.CommRequest+`"`), id)
	}
	switch e.Action {
	case messages.CommOpen:
		content.Target = &e.Target
		k.comms.add(e.ID, e.Target)
	case messages.CommClose:
		k.comms.remove(e.ID)
	}
	m := k.make(iopub, kind, j.Header, content)
	if len(e.Metadata) > 0 {
		m.Metadata = json.RawMessage(e.Metadata)
	}
	m.Buffers = e.Buffers
	k.audience.all(m)
}

// helped is code that asks what a name stands for, as IPython has it: name?, name??, ?name.
// It is made when the first code comes: its classes take longer than the rest of the
// command's start.
var helped = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:([\pL_][\pL\pN_.]*)\s*\?{1,2}|\?{1,2}\s*([\pL_][\pL\pN_.]*))\s*;?\s*$`)
})

// asksFor is the name that code asks about, "" when it is code to run.
func asksFor(code string) string {
	m := helped().FindStringSubmatch(code)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

// page returns what there is to be shown of a name apart from the output. What is not known is said as
// output, and a problem with the kernel is returned.
func (k *kernel) page(j job, name string) ([]any, *problemReply) {
	text, err := k.s.Inspect(k.life, name, len(name))
	switch {
	case err != nil:
		f := hostFailure(err)
		k.publish(j.Header, "error", f.raised)
		return nil, &f
	case text == "":
		k.publish(j.Header, "stream", map[string]string{"name": "stdout", "text": fmt.Sprintf("Object `%s` not found.\n", name)})
		return []any{}, nil
	}
	return []any{map[string]any{"source": "page", "start": 0, "data": map[string]string{messages.MIMEPlain: text}}}, nil
}

// ended is how a call failed; false: it did not.
func ended(r messages.Result) (problemReply, bool) {
	switch r.Outcome {
	case messages.OutcomeOK:
		return problemReply{}, false
	case messages.OutcomeCancelled:
		return failure("KeyboardInterrupt", r.Reason, nil), true
	case messages.OutcomeTimeout:
		return failure("TimeoutError", r.Err().Error(), nil), true
	case messages.OutcomeLost:
		return failure("KernelDied", r.Err().Error(), nil), true
	default:
		return failure("KernelError", r.Err().Error(), nil), true
	}
}

// bundle is a display, or a result, for clients.
type bundle struct {
	Data      messages.Bundle   `json:"data"`
	Metadata  json.RawMessage   `json:"metadata"`
	Transient map[string]string `json:"transient"`
	Count     int               `json:"execution_count,omitempty"`
}

func bundleOf(data messages.Bundle, metadata json.RawMessage, id string, count int) bundle {
	b := bundle{data, metadata, map[string]string{}, count}
	if len(metadata) == 0 || string(metadata) == "null" {
		b.Metadata = none
	}
	if id != "" {
		b.Transient["display_id"] = id
	}
	return b
}

// shown is the message for an event, "" for one that clients have no word for. n is the
// number of the code.
func shown(e messages.Event, n int) (kind string, content any) {
	switch e := e.(type) {
	case messages.Notice:
		if e.Code != messages.LateOutput && e.Code != stdin { // what they are about says enough
			return "stream", map[string]string{"name": "stderr", "text": e.Text + "\n"}
		}
	case messages.Display:
		if e.Update {
			return "update_display_data", bundleOf(e.Data, e.Metadata, e.DisplayID, 0)
		}
		return "display_data", bundleOf(e.Data, e.Metadata, e.DisplayID, 0)
	case messages.ExecuteResult:
		return "execute_result", bundleOf(unadorned(e.Data), e.Metadata, e.DisplayID, n)
	case messages.ClearOutput:
		return "clear_output", map[string]bool{"wait": e.Wait}
	}
	return "", nil
}

// unadorned is a result without the tree of JSON that the runner puts beside the text of a
// list or a dictionary: JupyterLab would show that instead, and IPython has none. A result
// that is JSON by its own wish, as IPython's JSON, has no text of such a kind.
func unadorned(data messages.Bundle) messages.Bundle {
	tree, text := data[messages.MIMEJSON], ""
	if len(data) == 2 {
		text, _ = data.Text(messages.MIMEPlain)
	}
	if len(tree) == 0 || text == "" || tree[0] != text[0] {
		return data
	}
	return messages.Bundle{messages.MIMEPlain: data[messages.MIMEPlain]}
}

// evaluate returns the value of an expression, as execute_reply has it. It is not counted,
// and what it prints is not shown.
func (k *kernel) evaluate(ctx context.Context, expression string) any {
	if !speaksPython(k.spec) {
		return failure("NotImplementedError", "expressions are evaluated by kernels of Python alone", nil)
	}
	data := map[string]any{messages.MIMEPlain: "None"} // which shows nothing
	value := map[string]any{"status": "ok", "data": data, "metadata": none}
	for e, err := range k.s.Stream(ctx, coppice.Request{Cells: []messages.Cell{{Code: "(" + expression + "\n)"}}}) {
		if err != nil {
			return hostFailure(err)
		}
		switch e := e.(type) {
		case messages.Error:
			return failure(e.Name, e.Message, e.Traceback)
		case messages.ExecuteResult:
			b := bundleOf(unadorned(e.Data), e.Metadata, "", 0)
			value["data"], value["metadata"] = b.Data, b.Metadata
		case messages.Final:
			k.woke(e.Result.Restored)
			if f, failed := ended(e.Result); failed {
				return f
			}
		}
	}
	return value
}

// say runs code that is not counted, and returns what it prints.
func (k *kernel) say(code string) (string, error) {
	var b strings.Builder
	for e, err := range k.s.Stream(k.life, coppice.Request{Cells: []messages.Cell{{Code: code}}}) {
		if err != nil {
			return "", err
		}
		switch e := e.(type) {
		case messages.Stream:
			if e.Name == messages.StdoutStream {
				b.WriteString(e.Text)
			}
		case messages.Error:
			return "", fmt.Errorf("ask the kernel: %s: %s", e.Name, e.Message)
		case messages.Final:
			k.woke(e.Result.Restored)
			if f, failed := ended(e.Result); failed {
				return "", fmt.Errorf("ask the kernel: %s: %s", f.Name, f.Value)
			}
		}
	}
	return b.String(), nil
}

// versionTime bounds how long a kernel is asked for its version.
const versionTime = time.Minute

// learn asks a kernel for the version of its language, unless it is known.
func (a *API) learn(k *kernel) {
	if a.version3() != unknown || !speaksPython(k.spec) {
		return
	}
	ctx, cancel := context.WithTimeout(k.life, versionTime)
	defer cancel()
	found, _ := k.evaluate(ctx, "__import__('platform').python_version()").(map[string]any)
	b, _ := found["data"].(messages.Bundle)
	text, _ := b.Text(messages.MIMEPlain)
	if text = strings.Trim(text, "'\""); text == "" {
		return // the next one is asked
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.language = text
}

// unknown stands for a version that no kernel has said yet.
const unknown = "3"

// version3 is the version of Python.
func (a *API) version3() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.language == "" {
		return unknown
	}
	return a.language
}
