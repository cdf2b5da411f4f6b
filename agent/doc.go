// Package agent makes of a [coppice.Host] what an agent puts before its model: tools
// with a name, a description, a JSON schema and a Call.
//
//	host, err := coppice.Start(ctx, coppice.Options{})
//	…
//	tools, err := agent.Tools(host, agent.Options{}) // Name, Description and Schema are for the model
//	…
//	result, err := tools[0].Call(ctx, agent.Call{Arguments: arguments, Session: messages.SessionKey{Session: "chat 7"}})
//
// # The tools
//
//	python                      cells of Python in a session that stays alive
//	eval                        in place of python: a language, a timeout and a reset for each cell
//	execute_code, reset_repl    in place of python: one piece of code, and a new start
//	bash                        a shell command, where the host allows it
//	notebook_read, _edit, _run  notebooks, where they were asked for
//	tool_NAME                   the tools of the host's launcher
//
// [Options] say which of them a model gets, and [ModeOf] what became of python and
// bash. The tools hold no state: everything that they do goes through
// [coppice.Session], [coppice.Host.Command] and the launcher of the host, and ends
// with that.
//
// # Guarantees
//
//   - A call whose arguments cannot be used runs nothing, and its *[Error] names the
//     path of the argument and the next step: the model can mend it.
//   - What code did wrong is part of the [Result], for the model to read; an error
//     beside it says that the host has ended, or that no session was named.
//   - Conversations never meet by accident: a tool that runs code refuses a call
//     without a session with [ErrNoSession], and the argument session of a model
//     names one within that of its conversation.
//   - A call ends when its context does: the code is interrupted, and the session is
//     kept.
//   - The schemas are valid, and take what the tools take.
//
// Tools, and everything else here, may be used from any goroutine.
//
// # Frameworks
//
// The packages below this one turn the list of tools into tools of the Agent
// Development Kit (adk), eino, Genkit (genkit) and trpc-agent-go (trpc). Each is a
// module of its own, so that only programs that use a framework link it.
package agent
