package selfref

import (
	"context"

	"github.com/coppice-run/coppice/agent/primitive"
)

func (b *Backend) forkPrimitives() []primitive.Primitive {
	return []primitive.Primitive{
		{
			Name: "fork.is_bound", Description: "Says whether the host can run forks.", OutputType: "bool", OutputParsing: "True or False.",
			BestPractices: []string{"Ask before you plan with forks."},
			Handler:       func(context.Context, *primitive.Call) (any, error) { return b.o.Agent != nil, nil },
		},
		{
			Name: "fork.spawn", Description: "Starts a copy of you with this conversation and a task. It runs on its own; gather_all waits for it.",
			OutputType: "dict", OutputParsing: "A handle: fork_id, parent_fork_id, depth, source_memory_key, memory_key, status running.",
			Parameters: []primitive.Parameter{
				{Name: "message", Type: "str", Description: "The task."},
				{Name: "kwargs", Kind: primitive.VarKeyword, Description: "kernel=\"live\" copies your variables where the host can; source_memory_key names the conversation to go on from, fork_memory_key a new one for the fork, which then stays; the rest goes to the agent."},
			},
			BestPractices: []string{"Give each fork one task that needs no word with the others.", "A fork has an interpreter of its own: put into the message what it must know of your variables."},
			NextSteps:     []string{"Collect the results with runtime.selfref.fork.gather_all(handles): each is a ForkResult, status first."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.spawn(ctx, c) },
		},
		{
			Name: "fork.gather_all", Description: "Waits for forks and returns their results.", OutputType: "dict[str, ForkResult]",
			OutputParsing: "By fork_id, in order: status, fork_id, response, result, history_count, history_included, error_type and error_message when status is error; note says what is not whole. A live fork of this call has the status running.",
			Parameters: []primitive.Parameter{
				{Name: "fork_ids", Type: "str | dict | list | None", Optional: true, Default: "None", Description: "Ids or handles; all of yours if left out."},
				{Name: "include_history", Type: "bool", Kind: primitive.KeywordOnly, Optional: true, Default: "False", Description: "With the whole conversation of each."},
			},
			BestPractices: []string{"Check status before you read response; ask for the history only when you need it.", "Results are kept until the session ends: drop those that you have read."},
			Handler:       func(ctx context.Context, c *primitive.Call) (any, error) { return b.gather(ctx, c) },
		},
		{
			Name: "fork.cancel", Description: "Cancels a fork that runs.", OutputType: "bool", OutputParsing: "Whether it was running.",
			Parameters:    []primitive.Parameter{{Name: "fork_id", Type: "str | dict | list", Description: "fork_N, a handle, or a list of them."}},
			BestPractices: []string{"Cancel what you do not need any more: forks that run take places."},
			Handler:       func(_ context.Context, c *primitive.Call) (any, error) { return b.cancel(c) },
		},
		{
			Name: "fork.read", Description: "Reads a part of a response that is too long for gather_all.", OutputType: "dict",
			OutputParsing: "text, next (where to go on, None at the end) and total, in characters. The text of a response that is no string is its JSON.",
			Parameters: []primitive.Parameter{
				{Name: "fork_id", Type: "str | dict", Description: "fork_N or a handle."},
				{Name: "start", Type: "int", Optional: true, Default: "0", Description: "The first character."},
				{Name: "length", Type: "int", Optional: true, Default: "500000", Description: "How many at most; no more than 500000."},
			},
			BestPractices: []string{"Use it when the note of a result says that the response does not fit."},
			Handler:       func(_ context.Context, c *primitive.Call) (any, error) { return b.read(c) },
		},
		{
			Name: "fork.drop", Description: "Drops the results of forks, and cancels those that run.", OutputType: "int", OutputParsing: "How many.",
			Parameters:    []primitive.Parameter{{Name: "fork_ids", Type: "str | dict | list", Description: "Ids or handles."}},
			BestPractices: []string{"Drop results that you have read: they take memory until the session ends."},
			Handler:       func(_ context.Context, c *primitive.Call) (any, error) { return b.drop(c) },
		},
	}
}
