// Package trpc lets agents that are built with trpc-agent-go
// (trpc.group/trpc-go/trpc-agent-go) run code in the sessions of a
// [coppice.Host], as the code executor of an agent or as its tools.
//
//	executor := coppicetrpc.NewCodeExecutor(host, coppicetrpc.Options{})
//	a := llmagent.New("analyst", llmagent.WithCodeExecutor(executor))
//
// An execution id names a session: variables stay from one execution to the next
// with the same id, and trpc-agent-go gives one id to each conversation. Python
// and bash blocks run in their order, and the first one that fails ends the
// execution.
//
// What the code did wrong is output, for the model to read; an error comes only
// when the host has ended or the input cannot be run. The end of a context
// interrupts the code and keeps the session.
//
// A [CodeExecutor] and the tools may be used from any goroutine. The package is a
// module of its own, so that trpc-agent-go is linked only by programs that use it.
package trpc
