package fakegateway

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
)

// Cell is one execute_request in a kernel. Only the kernel's own goroutine, in
// which [Options.Execute] is called, may use it.
type Cell struct {
	Kernel *Kernel
	// Code is what to execute, Request the whole content.
	Code    string
	Request map[string]any

	request       request
	session       string
	count         int
	interrupted   chan struct{}
	interruptOnce sync.Once
	fenced        chan struct{}
	fenceOnce     sync.Once
}

func newCell(k *Kernel, r request) *Cell {
	code, _ := r.Content["code"].(string)
	k.mu.Lock()
	defer k.mu.Unlock()
	if store, _ := r.Content["store_history"].(bool); store {
		k.count++
	}
	return &Cell{
		Kernel: k, Code: code, Request: r.Content, request: r, session: k.session, count: k.count,
		interrupted: make(chan struct{}), fenced: make(chan struct{}),
	}
}

// fence makes the cell part of a process that is gone.
func (c *Cell) fence() { c.fenceOnce.Do(func() { close(c.fenced) }) }

// Header returns the header of the request, the parent of what answers it.
func (c *Cell) Header() map[string]any { return c.request.Header }

// Publish sends a message on iopub whose parent is the request. The process of
// a cell that was replaced sends nothing.
func (c *Cell) Publish(typ string, content map[string]any) {
	select {
	case <-c.fenced:
		return
	case <-c.Kernel.gone:
		return
	default:
	}
	c.Kernel.Publish(typ, c.request.Header, content)
}

// Status publishes "busy" or "idle".
func (c *Cell) Status(state string) {
	c.Publish("status", map[string]any{"execution_state": state})
}

// Begin publishes busy and execute_input.
func (c *Cell) Begin() {
	c.Status("busy")
	if silent, _ := c.Request["silent"].(bool); !silent {
		c.Publish("execute_input", map[string]any{"code": c.Code, "execution_count": c.count})
	}
}

// Stream publishes text on stdout or stderr.
func (c *Cell) Stream(name, text string) {
	c.Publish("stream", map[string]any{"name": name, "text": text})
}

// Drop stands for n messages that the kernel sent and that never arrive, as a
// full ZeroMQ queue makes it.
func (c *Cell) Drop(n int) {
	for range n {
		c.Kernel.header("stream")
	}
}

// Display publishes a bundle; with an id, one that can be updated.
func (c *Cell) Display(data map[string]any, id string) {
	transient := map[string]any{}
	if id != "" {
		transient["display_id"] = id
	}
	c.Publish("display_data", map[string]any{"data": data, "metadata": map[string]any{}, "transient": transient})
}

// Result publishes the value of the cell.
func (c *Cell) Result(text string) {
	c.Publish("execute_result", map[string]any{
		"data": map[string]any{"text/plain": text}, "metadata": map[string]any{}, "execution_count": c.count,
	})
}

// Error publishes an exception.
func (c *Cell) Error(name, value string) { c.Publish("error", exception(name, value)) }

// exception is the content of an error message and of a reply.
func exception(name, value string) map[string]any {
	return map[string]any{"ename": name, "evalue": value, "traceback": []string{"Traceback (fake)", name + ": " + value}}
}

// Reply sends an execute_reply with these members on top of the usual ones.
func (c *Cell) Reply(status string, members map[string]any) {
	select {
	case <-c.fenced:
		return
	case <-c.Kernel.gone:
		return
	default:
	}
	content := map[string]any{"status": status}
	if status != "aborted" {
		content["execution_count"] = c.count
	}
	if status == "ok" {
		content["payload"], content["user_expressions"] = []any{}, map[string]any{}
	}
	maps.Copy(content, members)
	c.Kernel.deliver(c.request.from.session, Message{
		Channel: "shell", Header: c.Kernel.header("execute_reply"), Parent: c.request.Header, Content: content,
	})
}

// ReplyError sends an execute_reply that carries an exception.
func (c *Cell) ReplyError(name, value string) { c.Reply("error", exception(name, value)) }

// Interrupted is closed when the cell is interrupted.
func (c *Cell) Interrupted() <-chan struct{} { return c.interrupted }

// Gone is closed when the cell's process ends.
func (c *Cell) Gone() <-chan struct{} { return c.Kernel.gone }

// Serve executes the script properly: busy, input, output, reply, idle.
func (c *Cell) Serve() {
	c.Begin()
	raised, members := c.Run()
	if raised != nil {
		c.Error(raised[0], raised[1])
		c.ReplyError(raised[0], raised[1])
	} else {
		c.Reply("ok", members)
	}
	c.Status("idle")
}

// Run interprets the script and publishes its outputs. raised is the exception
// that ended it, as name and text; members belong in the reply.
func (c *Cell) Run() (raised []string, members map[string]any) {
	for line := range strings.Lines(c.Code) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "out":
			c.Stream("stdout", rest+"\n")
		case "err":
			c.Stream("stderr", rest+"\n")
		case "result":
			c.Result(rest)
		case "display":
			mime, text, _ := strings.Cut(rest, " ")
			c.Display(map[string]any{mime: text}, "")
		case "flood":
			n, _ := strconv.Atoi(rest)
			for i := range n {
				c.Stream("stdout", fmt.Sprintln(i))
			}
		case "raise":
			name, text, _ := strings.Cut(rest, " ")
			return []string{name, text}, nil
		case "block", "await":
			if !c.wait(word == "await") {
				return []string{"SystemExit", ""}, nil
			}
			return []string{"KeyboardInterrupt", ""}, nil
		case "ask":
			value, raised := c.ask(rest)
			if raised != nil {
				return raised, nil
			}
			c.Stream("stdout", value+"\n")
		case "exit":
			return nil, map[string]any{"payload": []any{map[string]any{"source": "ask_exit", "keepkernel": false}}}
		case "die":
			c.Kernel.Die()
			return []string{"SystemExit", ""}, nil
		default:
			c.Stream("stdout", line+"\n")
		}
	}
	return nil, nil
}

// wait returns true when the cell was interrupted; with poked, when a shell
// request came after that.
func (c *Cell) wait(poked bool) bool {
	select {
	case <-c.interrupted:
	case <-c.fenced:
		return false
	case <-c.Kernel.gone:
		return false
	}
	if !poked {
		return true
	}
	for {
		c.Kernel.mu.Lock()
		waiting, wake := len(c.Kernel.shell) > 0, c.Kernel.wake
		c.Kernel.mu.Unlock()
		if waiting {
			return true
		}
		select {
		case <-wake:
		case <-c.Kernel.gone:
			return false
		}
	}
}

// ask sends an input request and waits for its answer.
func (c *Cell) ask(prompt string) (value string, raised []string) {
	if allowed, _ := c.Request["allow_stdin"].(bool); !allowed {
		return "", []string{"StdinNotImplementedError", "raw_input was called, but this frontend does not support input requests."}
	}
	h := c.Kernel.header("input_request")
	id, _ := h["msg_id"].(string)
	answer := make(chan string, 1)
	c.Kernel.mu.Lock()
	c.Kernel.inputs[id] = answer
	c.Kernel.mu.Unlock()
	c.Kernel.deliver(c.request.from.session, Message{
		Channel: "stdin", Header: h, Parent: c.request.Header,
		Content: map[string]any{"prompt": prompt, "password": false},
	})
	select {
	case value = <-answer:
		return value, nil
	case <-c.interrupted:
		return "", []string{"KeyboardInterrupt", "Interrupted by user"}
	case <-c.Kernel.gone:
		return "", []string{"SystemExit", ""}
	}
}
