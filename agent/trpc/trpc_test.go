package trpc_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"trpc.group/trpc-go/trpc-agent-go/codeexecutor"
	"trpc.group/trpc-go/trpc-agent-go/tool"
	"trpc.group/trpc-go/trpc-agent-go/tool/codeexec"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/trpc"
	"github.com/coppice-run/coppice/messages"
)

// patience bounds every wait.
const patience = time.Minute

func start(t *testing.T) *coppice.Host {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Bash: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return host
}

func input(id string, blocks ...codeexecutor.CodeBlock) codeexecutor.CodeExecutionInput {
	return codeexecutor.CodeExecutionInput{ExecutionID: id, CodeBlocks: blocks}
}

func python(code string) codeexecutor.CodeBlock {
	return codeexecutor.CodeBlock{Language: "python", Code: code}
}

// Blocks run in their order, in the session of their execution id; what the code
// did wrong is output.
func TestExecuteCode(t *testing.T) {
	e := trpc.NewCodeExecutor(start(t), trpc.Options{})
	run := func(in codeexecutor.CodeExecutionInput) codeexecutor.CodeExecutionResult {
		t.Helper()
		r, err := e.ExecuteCode(t.Context(), in)
		require.NoError(t, err)
		return r
	}
	require.Contains(t, run(input("a", python("x = 40"), codeexecutor.CodeBlock{Language: "bash", Code: "echo $((6*7))"}, python("print(x + 3)"))).Output, "42")
	require.Equal(t, "40", run(input("a", python("x"))).Output, "variables stay")
	require.Contains(t, run(input("b", python("x"))).Output, "NameError", "another id has its own")
	require.Contains(t, run(input("b", codeexecutor.CodeBlock{Code: "1/0"})).Output, "ZeroDivisionError")
	require.Empty(t, run(input("a")).Output)

	const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC"
	pixel, err := base64.StdEncoding.DecodeString(picture)
	require.NoError(t, err)
	out := run(input("a", python(`display({"image/png": "`+picture+`"}, raw=True)`)))
	require.Len(t, out.OutputFiles, 1)
	require.Equal(t, codeexecutor.File{Name: "picture-1.png", MIMEType: "image/png", Content: string(pixel), SizeBytes: int64(len(pixel))}, out.OutputFiles[0])

	_, err = e.ExecuteCode(t.Context(), input("a", python("x = 1"), codeexecutor.CodeBlock{Language: "rust", Code: "fn main() {}"}))
	var language *trpc.LanguageError
	require.ErrorAs(t, err, &language)
	require.Equal(t, 2, language.Block)
	require.EqualError(t, err, `code block 2 is in "rust": write it in python or bash`)
	require.Equal(t, "40", run(input("a", python("x"))).Output, "nothing of that input was run")
	_, err = e.ExecuteCode(t.Context(), input("", python("x = 1")))
	require.ErrorIs(t, err, agent.ErrNoSession, "it would be everybody's")
}

// The end of a context, and a timeout, interrupt the code and keep the session; a
// host that has ended is an error.
func TestTheEndOfAnExecution(t *testing.T) {
	host := start(t)
	e := trpc.NewCodeExecutor(host, trpc.Options{Timeout: 300 * time.Millisecond})
	_, err := e.ExecuteCode(t.Context(), input("a", python("x = 7")))
	require.NoError(t, err)
	began := time.Now()
	r, err := e.ExecuteCode(t.Context(), input("a", python("import time; time.sleep(300)")))
	require.NoError(t, err)
	require.Contains(t, r.Output, "timed out")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stops := trpc.NewCodeExecutor(host, trpc.Options{OnEvent: func(_ context.Context, e messages.Event) {
		if _, ok := e.(messages.Stream); ok {
			cancel()
		}
	}})
	r, err = stops.ExecuteCode(ctx, input("a", python("print('begun', flush=True)\nimport time; time.sleep(300)")))
	require.NoError(t, err)
	require.Contains(t, r.Output, "begun")
	require.Contains(t, r.Output, "Command aborted")
	_, err = stops.ExecuteCode(ctx, input("a", python("x")))
	require.ErrorIs(t, err, context.Canceled, "a context that has ended begins nothing")
	require.Less(t, time.Since(began), patience)
	r, err = trpc.NewCodeExecutor(host, trpc.Options{}).ExecuteCode(t.Context(), input("a", python("x")))
	require.NoError(t, err)
	require.Equal(t, "7", r.Output)
	end, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	host.Shutdown(end)
	_, err = e.ExecuteCode(t.Context(), input("a", python("x")))
	require.ErrorIs(t, err, coppice.ErrClosed)
}

// The framework's own tool for code runs it here.
func TestTheToolOfTheFramework(t *testing.T) {
	run := codeexec.NewTool(trpc.NewCodeExecutor(start(t), trpc.Options{}))
	call := func(arguments string) string {
		t.Helper()
		out, err := run.Call(t.Context(), []byte(arguments))
		require.NoError(t, err)
		return out.(codeexecutor.CodeExecutionResult).Output
	}
	require.Equal(t, "(no output)", call(`{"execution_id":"a","code_blocks":[{"language":"python","code":"x = 40"}]}`))
	require.Equal(t, "42", call(`{"execution_id":"a","code_blocks":[{"language":"python","code":"x + 2"}]}`))
}

// The tools of a host are tools of trpc-agent-go; what is wrong is told.
func TestTools(t *testing.T) {
	host := start(t)
	list, err := agent.Tools(host, agent.Options{})
	require.NoError(t, err)
	tools, err := trpc.Tools(list, trpc.Options{Session: func(context.Context, string) messages.SessionKey { return messages.SessionKey{Session: "agent"} }})
	require.NoError(t, err)
	require.Len(t, tools, 2)
	d := tools[0].Declaration()
	require.Equal(t, "python", d.Name)
	require.NotEmpty(t, d.Description)
	require.Equal(t, "array", d.InputSchema.Properties["cells"].Type)
	call := func(i int, arguments string) any {
		t.Helper()
		out, err := tools[i].(tool.CallableTool).Call(t.Context(), []byte(arguments))
		require.NoError(t, err)
		return out
	}
	require.Contains(t, call(0, `{"cells":[{"code":"x = 40"},{"code":"x + 2"}]}`), "42")
	require.Equal(t, "40", call(0, `{"cells":[{"code":"x"}]}`))
	require.Contains(t, call(0, `{"cells":"x"}`), "python: cells: is a JSON string; it must be a list")
	require.Contains(t, call(1, `{"command":"echo $((6*7))"}`), "42")
	_, err = trpc.Tools([]agent.Tool{{Name: "broken", Schema: json.RawMessage(`{`)}}, trpc.Options{})
	require.ErrorContains(t, err, "the schema of the tool broken")
}
