package jupyterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-run/coppice/messages"
)

// problemReply is the reply to a request that failed.
type problemReply struct {
	Status string `json:"status"`
	raised
}

// raised is the content of an error. Notebooks keep it as it is: one member more, and they
// are not valid.
type raised struct {
	Name      string   `json:"ename"`
	Value     string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

func failure(name, value string, traceback []string) problemReply {
	if traceback == nil {
		traceback = []string{}
	}
	return problemReply{"error", raised{name, value, traceback}}
}

// hostFailure is one of the host, and not of the code.
func hostFailure(err error) problemReply { return failure("KernelError", err.Error(), nil) }

// serve serves a request of the shell channel.
func (k *kernel) serve(j job) {
	err := k.revive()
	if j.from == nil {
		return // the log has it
	}
	k.become(busy)
	k.publish(j.Header, "status", status{busy})
	switch {
	case err != nil && j.Type == "execute_request":
		f := hostFailure(err)
		k.publish(j.Header, "error", f.raised)
		k.reply(j, f)
	case err != nil:
		k.reply(j, hostFailure(err))
	default:
		k.shell(j)
	}
	k.become(idle)
	k.publish(j.Header, "status", status{idle})
}

// shell serves one by its type.
func (k *kernel) shell(j job) {
	switch j.Type {
	case "kernel_info_request":
		k.reply(j, k.info())
	case "execute_request":
		k.execute(j)
	case "complete_request":
		k.complete(j)
	case "inspect_request":
		k.inspect(j)
	case "is_complete_request":
		k.whole(j)
	case "history_request":
		k.recall(j)
	case "comm_info_request":
		k.reply(j, map[string]any{"status": "ok", "comms": k.comms.list(field(j, "target_name"))})
	case commOpen, commMsg, commClose:
		k.comm(j)
	default:
		if strings.HasSuffix(j.Type, "_request") {
			k.reply(j, failure("NotImplementedError", "this kernel does not serve "+j.Type, nil))
		}
	}
}

// field is a member of a request that is a string, "" when it is not there.
func field(j job, name string) string {
	var o map[string]any
	_ = json.Unmarshal(j.Content, &o) // what is not there is ""
	s, _ := o[name].(string)
	return s
}

// control serves a request that does not wait for the others. What it does is done before
// the clients hear of it: one of them may be slow.
func (k *kernel) control(j job) {
	var answer any
	switch j.Type {
	case "kernel_info_request":
		answer = k.info()
	case "interrupt_request":
		answer = map[string]string{"status": "ok"}
		if err := k.s.Interrupt(); err != nil {
			answer = hostFailure(err)
		}
	case "shutdown_request":
		k.shutdown(j)
		return
	case "debug_request":
		var o struct {
			Seq     json.Number `json:"seq"`
			Command string      `json:"command"`
		}
		_ = json.Unmarshal(j.Content, &o) // it is refused anyway
		seq, _ := strconv.Atoi(o.Seq.String())
		answer = map[string]any{"type": "response", "request_seq": seq, "success": false, "command": o.Command, "message": "this kernel has no debugger"}
	default:
		answer = failure("NotImplementedError", "this kernel does not serve "+j.Type, nil)
	}
	k.publish(j.Header, "status", status{busy})
	k.reply(j, answer)
	k.publish(j.Header, "status", status{idle})
}

// shutdown ends the kernel, or its process alone.
func (k *kernel) shutdown(j job) {
	var o struct {
		Restart bool `json:"restart"`
	}
	_ = json.Unmarshal(j.Content, &o) // without it, the kernel ends
	k.publish(j.Header, "status", status{busy})
	if o.Restart {
		err := k.restart()
		if err != nil {
			k.reply(j, hostFailure(err))
		} else {
			k.reply(j, map[string]any{"status": "ok", "restart": true})
		}
		k.publish(j.Header, "status", status{idle})
		return
	}
	k.reply(j, map[string]any{"status": "ok", "restart": false})
	k.publish(j.Header, "status", status{idle})
	if err := k.a.stop(context.WithoutCancel(k.life), k); err != nil {
		k.a.o.Logger.Warn("a kernel did not end", "kernel", k.id, "err", err)
	}
}

// answer hands a line to the code that waits for one. The protocol does not say which: one
// question waits at a time.
func (k *kernel) answer(m message) {
	var o struct {
		Value string `json:"value"`
	}
	id := k.audience.question().id
	if m.Type != "input_reply" || id == "" || json.Unmarshal(m.Content, &o) != nil {
		return // no one waits for it
	}
	line, _, _ := strings.Cut(o.Value, "\n")
	if _, err := k.s.SubmitInput(id, strings.TrimSuffix(line, "\r")); err != nil {
		k.a.o.Logger.Warn("an answer was not taken", "kernel", k.id, "err", err)
		return
	}
	k.audience.answered(id)
}

// info says what the kernel is.
func (k *kernel) info() map[string]any {
	if !speaksPython(k.spec) {
		return map[string]any{
			"status": "ok", "protocol_version": protocol, "implementation": "coppice", "implementation_version": k.a.o.Version,
			"banner": k.spec.DisplayName + " in a session of Coppice", "help_links": []any{}, "debugger": false, "supported_features": []string{},
			"language_info": infoOf(k.spec.Language),
		}
	}
	language := k.a.version3()
	return map[string]any{
		"status": "ok", "protocol_version": protocol, "implementation": "coppice", "implementation_version": k.a.o.Version,
		"banner": "Python " + language + " in a session of Coppice", "help_links": []any{}, "debugger": false, "supported_features": []string{},
		"language_info": map[string]any{
			"name": "python", "version": language, "mimetype": "text/x-python", "file_extension": ".py", "pygments_lexer": "ipython3",
			"codemirror_mode": map[string]any{"name": "ipython", "version": 3}, "nbconvert_exporter": "python",
		},
	}
}

// position is where the cursor of a request is, in bytes of its code: clients count
// characters. Without one, it is the end.
func position(code string, cursor *int) int {
	if cursor == nil {
		return len(code)
	}
	at := 0
	for range max(*cursor, 0) {
		if at >= len(code) {
			break
		}
		_, n := utf8.DecodeRuneInString(code[at:])
		at += n
	}
	return at
}

// looking is what complete_request and inspect_request ask.
type looking struct {
	Code   string `json:"code"`
	Cursor *int   `json:"cursor_pos"`
}

// bare is a completion without what Python's own completer puts behind a name: Jupyter's
// clients have the name alone.
func bare(match string) string {
	name := strings.TrimRight(match, "(): ")
	if end := match[len(name):]; end == "(" || end == "()" || end == ":" || end == " " {
		return name
	}
	return match
}

func (k *kernel) complete(j job) {
	var o looking
	if err := json.Unmarshal(j.Content, &o); err != nil {
		k.reply(j, failure("ValueError", err.Error(), nil))
		return
	}
	at := position(o.Code, o.Cursor)
	c, err := k.s.Complete(k.life, o.Code, at)
	if err != nil {
		k.reply(j, hostFailure(err))
		return
	}
	matches := make([]string, 0, len(c.Matches))
	for _, m := range c.Matches {
		matches = append(matches, bare(m))
	}
	k.reply(j, map[string]any{
		"status": "ok", "matches": slices.Compact(matches), "metadata": map[string]any{},
		"cursor_start": utf8.RuneCountInString(o.Code[:c.Start]), "cursor_end": utf8.RuneCountInString(o.Code[:at]),
	})
}

func (k *kernel) inspect(j job) {
	var o looking
	if err := json.Unmarshal(j.Content, &o); err != nil {
		k.reply(j, failure("ValueError", err.Error(), nil))
		return
	}
	text, err := k.s.Inspect(k.life, o.Code, position(o.Code, o.Cursor))
	if err != nil {
		k.reply(j, hostFailure(err))
		return
	}
	data := map[string]string{}
	if text != "" {
		data[messages.MIMEPlain] = text
	}
	k.reply(j, map[string]any{"status": "ok", "found": text != "", "data": data, "metadata": map[string]any{}})
}

// wholeness asks the kernel about code: the runner's commands, or IPython, which both answer
// with a state and an indentation. It is a statement, so that it leaves no value behind.
const wholeness = `if __import__('sys').stdout.write('%%s %%s' %% (__import__('builtins').__dict__.get('__coppice__') or get_ipython().input_transformer_manager).check_complete(%s)): pass`

// whole answers whether code is complete, for consoles that run it then.
func (k *kernel) whole(j job) {
	var o looking
	if err := json.Unmarshal(j.Content, &o); err != nil {
		k.reply(j, failure("ValueError", err.Error(), nil))
		return
	}
	switch {
	case !speaksPython(k.spec):
		k.reply(j, map[string]string{"status": "unknown"})
		return
	case asksFor(o.Code) != "":
		k.reply(j, map[string]string{"status": "complete"})
		return
	}
	state, indent := "unknown", 0
	if said, err := k.say(fmt.Sprintf(wholeness, quoted(o.Code))); err == nil {
		word, rest, _ := strings.Cut(said, " ")
		switch word {
		case "complete", "incomplete", "invalid":
			state = word
			_, _ = fmt.Sscanf(rest, "%d", &indent) // None is no indentation
		}
	}
	answer := map[string]string{"status": state}
	if state == "incomplete" {
		answer["indent"] = strings.Repeat(" ", min(max(indent, 0), 400))
	}
	k.reply(j, answer)
}

// recall answers what code the kernel was given.
func (k *kernel) recall(j job) {
	var o recollection
	if err := json.Unmarshal(j.Content, &o); err != nil {
		k.reply(j, failure("ValueError", err.Error(), nil))
		return
	}
	k.mu.Lock()
	found := k.past.matching(o)
	list := make([][3]any, len(found))
	for i, e := range found {
		list[i] = [3]any{e.process, e.line, e.input}
		if o.Output {
			list[i][2] = [2]any{e.input, e.output}
		}
	}
	k.mu.Unlock()
	k.reply(j, map[string]any{"status": "ok", "history": list})
}

// comm serves what a client says over a comm. What the object at its other end does then is
// shown as of this message.
func (k *kernel) comm(j job) {
	id := field(j, "comm_id")
	switch {
	case id == "":
		return
	case j.Type == commOpen:
		if !speaksPython(k.spec) || k.truly(commless) {
			k.publish(j.Header, commClose, commContent{ID: id, Data: none})
			return
		}
		k.comms.add(id, field(j, "target_name"))
	case !k.comms.has(id):
		return // it has been closed, which clients have been told
	case j.Type == commClose:
		k.comms.remove(id)
	}
	said, err := json.Marshal(struct {
		Header   json.RawMessage `json:"header"`
		Parent   json.RawMessage `json:"parent_header"`
		Metadata json.RawMessage `json:"metadata"`
		Content  json.RawMessage `json:"content"`
		Buffers  [][]byte        `json:"buffers"`
	}{j.Header, orNone(j.Parent), orNone(j.Metadata), j.Content, append([][]byte{}, j.Buffers...)})
	if err != nil {
		k.a.o.Logger.Warn("a message of a comm could not be read", "kernel", k.id, "err", err)
		return
	}
	k.mu.Lock()
	n := k.count
	k.mu.Unlock()
	code := fmt.Sprintf("__import__('builtins').exec(%s, {'said': %s})", quoted(hearing), quoted(string(said)))
	if _, problem := k.run(j, execution{Code: code, StoreHistory: new(bool)}, n); problem != nil && j.Type == commOpen && k.comms.remove(id) {
		k.publish(j.Header, commClose, commContent{ID: id, Data: none})
	}
}

// truly reports whether an expression is true in the kernel.
func (k *kernel) truly(expression string) bool {
	found, _ := k.evaluate(k.life, expression).(map[string]any)
	data, _ := found["data"].(messages.Bundle)
	text, _ := data.Text(messages.MIMEPlain)
	return text == "True"
}
