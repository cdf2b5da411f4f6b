package jupyter

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coppice-run/coppice/messages"
)

// Completion is what a kernel offers for the text before the cursor: see
// "Messaging in Jupyter", section "Completion". Start counts code points.
type Completion struct {
	Matches []string
	Start   int
}

// Complete asks the kernel what could stand at the cursor, a number of code
// points from the beginning of code. It is a request like [Kernel.Execute]: one
// at a time, and it waits for nothing but ctx. The error is that of Execute, or
// [ErrNoAnswer] when the kernel refuses, as one does that has no completer.
func (k *Kernel) Complete(ctx context.Context, code string, cursor int) (Completion, error) {
	var in struct {
		Status  ReplyStatus `json:"status"`
		Matches []string    `json:"matches"`
		Start   int         `json:"cursor_start"`
	}
	err := k.introspect(ctx, typeCompleteRequest, completeContent{Code: code, CursorPos: cursor}, &in)
	if err == nil && in.Status != ReplyOK {
		err = ErrNoAnswer
	}
	return Completion{Matches: in.Matches, Start: in.Start}, err
}

// Inspect asks the kernel what the name at the cursor stands for; nil is
// nothing. It is a request like [Kernel.Complete].
func (k *Kernel) Inspect(ctx context.Context, code string, cursor int) (messages.Bundle, error) {
	var in struct {
		Status ReplyStatus     `json:"status"`
		Found  bool            `json:"found"`
		Data   messages.Bundle `json:"data"`
	}
	err := k.introspect(ctx, typeInspectRequest, inspectContent{completeContent: completeContent{Code: code, CursorPos: cursor}}, &in)
	switch {
	case err != nil:
		return nil, err
	case in.Status != ReplyOK:
		return nil, ErrNoAnswer
	case !in.Found:
		return nil, nil
	}
	return in.Data, nil
}

// ErrNoAnswer says that a kernel got a request and did not want to answer it.
var ErrNoAnswer = errors.New("the kernel has no answer to this request")

// completeContent is the content of a complete_request.
type completeContent struct {
	Code      string `json:"code"`
	CursorPos int    `json:"cursor_pos"`
}

// inspectContent is the content of an inspect_request. DetailLevel 0 leaves the
// source code out.
type inspectContent struct {
	completeContent
	DetailLevel int `json:"detail_level"`
}

// introspect sends a request that is not an execution, and sees it through like
// one: it has a reply on shell and an idle on iopub, and both have to come.
func (k *Kernel) introspect(ctx context.Context, typ string, content any, to any) error {
	for {
		done, err := k.introspectOnce(ctx, typ, content)
		switch {
		case errors.Is(err, errUnheard):
			continue
		case err != nil:
			return err
		}
		if json.Unmarshal(done.reply, to) != nil {
			return contentError(replyType(typ))
		}
		return nil
	}
}

func (k *Kernel) introspectOnce(ctx context.Context, typ string, content any) (execution, error) {
	x, err := k.begin(ctx, typ, content, func(x *execution) error { x.silent = true; return nil })
	if err != nil {
		return execution{}, err
	}
	defer x.spool.Close()
	if _, _, err := k.deliverAll(ctx, x, nil, func(context.Context, messages.Event) error { return nil }); err != nil {
		k.abandon(x)
		return execution{}, err
	}
	k.mu.Lock()
	done := *x
	k.mu.Unlock()
	switch {
	case done.lost != nil:
		return done, done.lost
	case done.unheard:
		return done, errUnheard
	case !done.replied:
		return done, ErrNoReply
	}
	return done, nil
}

// replyType is the type of the reply to a request.
func replyType(request string) string {
	switch request {
	case typeCompleteRequest:
		return typeCompleteReply
	case typeInspectRequest:
		return typeInspectReply
	default:
		return typeExecuteReply
	}
}
