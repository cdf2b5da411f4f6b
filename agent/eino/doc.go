// Package eino offers the tools of a [github.com/coppice-run/coppice.Host] to agents that are built
// with eino (github.com/cloudwego/eino): Python that stays alive, the shell, and
// the tools of the host's launcher.
//
//	list, err := agent.Tools(host, agent.Options{})
//	tools, err := eino.Tools(list, eino.Options{Session: conversation}) // a function of yours
//	node, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: tools})
//
// What a call did wrong reaches the model as the result of the call, so that
// it can mend it; an error ends the graph and comes only when the host has ended.
// The end of a call's context interrupts its code and keeps the session.
//
// The tools may be used from any goroutine. The package is a module of its own,
// so that eino is linked only by programs that use it.
package eino
