package jupyterapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// helped is code that asks what a name stands for, as IPython has it: name?, name??, ?name.
var helped = regexp.MustCompile(`^\s*(?:([\pL_][\pL\pN_.]*)\s*\?{1,2}|\?{1,2}\s*([\pL_][\pL\pN_.]*))\s*;?\s*$`)

// asksFor is the name that code asks about, "" when it is code to run.
func asksFor(code string) string {
	m := helped.FindStringSubmatch(code)
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
		k.publish(j.Header, "error", f)
		return nil, &f
	case text == "":
		k.publish(j.Header, "stream", map[string]string{"name": "stdout", "text": fmt.Sprintf("Object `%s` not found.\n", name)})
		return []any{}, nil
	}
	return []any{map[string]any{"source": "page", "start": 0, "data": map[string]string{messages.MIMEPlain: text}}}, nil
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
	if asksFor(o.Code) != "" {
		k.reply(j, map[string]string{"status": "complete"})
		return
	}
	quoted, err := json.Marshal(o.Code) // a string of Python, too
	if err != nil {
		k.reply(j, failure("ValueError", err.Error(), nil))
		return
	}
	state, indent := "unknown", 0
	if said, err := k.say(fmt.Sprintf(wholeness, quoted)); err == nil {
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
			if f, failed := ended(e.Result); failed {
				return "", fmt.Errorf("ask the kernel: %s: %s", f.Name, f.Value)
			}
		}
	}
	return b.String(), nil
}
