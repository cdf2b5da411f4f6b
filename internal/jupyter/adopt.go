package jupyter

import (
	"context"
	"fmt"
	"strings"
)

// Adopt connects to a kernel that is there already, with its variables, and
// returns when it answers; a kernel that still runs code answers when that has
// ended, so ctx is the bound. Code that waits for input is told that there is none (EOFError):
// whoever it asked is gone; nor does it wait for what it prints to be taken. That is for kernels
// whose kernelspec is called python and something. [ErrNotFound]: the server does not know the
// kernel. When Adopt fails, the kernel is left as it was.
func (c *Client) Adopt(ctx context.Context, id string, stage func(string)) (*Kernel, error) {
	return c.adopt(ctx, id, stage, connection{})
}

// adopt is Adopt and Attach.
func (c *Client) adopt(ctx context.Context, id string, stage func(string), how connection) (*Kernel, error) {
	m, err := c.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("adopt kernel: %w", err)
	}
	if m.ExecutionState == stateDead {
		return nil, &LostError{Reason: "it died while it was not in use"}
	}
	if stage == nil {
		stage = func(string) {}
	}
	how.busy = m.ExecutionState == "busy" && strings.HasPrefix(m.Name, "python")
	if err := c.claim(id); err != nil {
		return nil, fmt.Errorf("adopt kernel: %w", err)
	}
	k, err := c.connect(ctx, id, stage, how)
	if err == nil {
		return k, nil
	}
	defer c.claimed.Delete(id)
	if k != nil {
		k.hangUp(&LostError{Reason: "it could not be adopted"})
	}
	return nil, fmt.Errorf("adopt kernel: %w", err)
}

// endOfInput stands for the end of input in the answer to a question.
const endOfInput = "\x04"

// leaveAlone tells code of another client that nobody takes what it says, and that there is no input.
func (k *Kernel) leaveAlone(ctx context.Context) error {
	f, err := k.message(chanControl, typeRepeatRequest, k.newID(), nil, repeatContent{Alone: true})
	if err != nil {
		return fmt.Errorf("encode that nobody listens: %w", err)
	}
	if err := k.send(ctx, f); err != nil {
		return err
	}
	return k.noInput(ctx)
}

// noInput tells code that waits for a line of another client that there is none. A kernel of
// Python throws it away before it asks, when nothing waits.
func (k *Kernel) noInput(ctx context.Context) error {
	f, err := k.message(chanStdin, typeInputReply, k.newID(), nil, inputContent{Value: endOfInput})
	if err != nil {
		return fmt.Errorf("encode the end of the input: %w", err)
	}
	return k.send(ctx, f)
}

// Detach ends the connection and leaves the kernel running on its server, for
// Adopt. An execution that runs is lost to the caller. Afterwards only Delete
// may be called.
func (k *Kernel) Detach() {
	k.hangUp(&LostError{Reason: "it was left for another host to adopt"})
}
