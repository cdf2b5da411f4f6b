package trpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/codeexecutor"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Options say how code is run. The zero value of a field is its default.
type Options struct {
	// Session says whose variables an execution uses: a name for each conversation;
	// id is its execution id, "" for a tool. nil: the id is the name of the session.
	// Give it where a model writes the id, as with the framework's tool for code: two
	// models may write the same. What has no name in the end is not run, since it
	// would be everybody's: the error is agent.ErrNoSession.
	Session func(ctx context.Context, id string) messages.SessionKey
	// Owner is the agent that calls; see coppice.Request.Owner.
	Owner string
	// Timeout is the time of an execution; see coppice.Request.Timeout. It is not
	// for tools: their calls have an argument for it.
	Timeout time.Duration
	// OnEvent hears the output as it comes, each execution's from one goroutine.
	// nil: it is not called.
	OnEvent func(context.Context, messages.Event)
}

// key is the session of an execution.
func (o Options) key(ctx context.Context, id string) messages.SessionKey {
	if o.Session != nil {
		return o.Session(ctx, id)
	}
	return messages.SessionKey{Session: id}
}

// CodeExecutor runs code blocks in the sessions of a host.
type CodeExecutor struct {
	host *coppice.Host
	o    Options
}

var _ codeexecutor.CodeExecutor = (*CodeExecutor)(nil)

// NewCodeExecutor makes a code executor. The host is the caller's to shut down.
func NewCodeExecutor(host *coppice.Host, o Options) *CodeExecutor {
	return &CodeExecutor{host: host, o: o}
}

// LanguageError says that a block is in a language that is not run. Nothing of
// the input was run.
type LanguageError struct {
	// Block counts from 1.
	Block int
	// Language is the block's, as it was given.
	Language string
}

// Error names the block and the languages that are run.
func (e *LanguageError) Error() string {
	return fmt.Sprintf("code block %d is in %q: write it in python or bash", e.Block, e.Language)
}

// CodeBlockDelimiter is that of Markdown.
func (*CodeExecutor) CodeBlockDelimiter() codeexecutor.CodeBlockDelimiter {
	return codeexecutor.CodeBlockDelimiter{Start: "```", End: "```"}
}

// ExecuteCode runs the blocks of an input, in their order, in the session of its
// execution id. Pictures are output files. An error is a *LanguageError, a
// *coppice.RequestError, agent.ErrNoSession, or says that the host has ended.
func (c *CodeExecutor) ExecuteCode(ctx context.Context, input codeexecutor.CodeExecutionInput) (codeexecutor.CodeExecutionResult, error) {
	if len(input.CodeBlocks) == 0 {
		return codeexecutor.CodeExecutionResult{}, nil
	}
	request := coppice.Request{Timeout: c.o.Timeout, Owner: c.o.Owner}
	for i, block := range input.CodeBlocks {
		code, ok := cell(block)
		if !ok {
			return codeexecutor.CodeExecutionResult{}, &LanguageError{Block: i + 1, Language: block.Language}
		}
		request.Cells = append(request.Cells, messages.Cell{Code: code})
	}
	key := c.o.key(ctx, input.ExecutionID)
	if key.Session == "" {
		return codeexecutor.CodeExecutionResult{}, fmt.Errorf("execute code: %w", agent.ErrNoSession)
	}
	r, err := c.run(ctx, c.session(key), request)
	if err != nil {
		return codeexecutor.CodeExecutionResult{}, fmt.Errorf("execute code: %w", err)
	}
	return codeexecutor.CodeExecutionResult{Output: r.Text, OutputFiles: files(r.Images)}, nil
}

func (c *CodeExecutor) session(key messages.SessionKey) *coppice.Session {
	return c.host.Session(key.Session, coppice.In(key.Cwd))
}

func (c *CodeExecutor) run(ctx context.Context, session *coppice.Session, request coppice.Request) (messages.Result, error) {
	if c.o.OnEvent == nil {
		result, err := session.Execute(ctx, request)
		if _, refused := errors.AsType[*messages.NotStartedError](err); refused {
			err = nil // the result says so
		}
		return result, err
	}
	var result messages.Result
	for e, err := range session.Stream(ctx, request) {
		if err != nil {
			return messages.Result{}, err
		}
		c.o.OnEvent(ctx, e)
		if final, ok := e.(messages.Final); ok {
			result = final.Result
		}
	}
	return result, nil
}

// cell is the Python cell that a block is run as.
func cell(block codeexecutor.CodeBlock) (string, bool) {
	switch strings.ToLower(strings.TrimSpace(block.Language)) {
	case "", "python", "python3", "py", "ipython":
		return block.Code, true
	case "bash", "sh", "shell":
		return "%%bash\n" + block.Code, true
	}
	return "", false
}

// files are the pictures of a result. Their contents are bytes, not base64.
func files(images []messages.Image) []codeexecutor.File {
	var list []codeexecutor.File
	for i, image := range images {
		data, err := base64.StdEncoding.DecodeString(image.Data)
		if err != nil {
			continue // a picture that was shown is in base64
		}
		list = append(list, codeexecutor.File{
			Name:     fmt.Sprintf("picture-%d.%s", i+1, strings.TrimPrefix(image.MIME, "image/")),
			MIMEType: image.MIME, Content: string(data), SizeBytes: int64(len(data)),
		})
	}
	return list
}
