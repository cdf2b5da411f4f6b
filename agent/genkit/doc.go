// Package genkit offers the tools of a [github.com/coppice-run/coppice.Host] to flows and agents that
// are built with Genkit (github.com/firebase/genkit/go): Python that stays alive,
// the shell, and the tools of the host's launcher.
//
//	list, err := agent.Tools(host, agent.Options{})
//	tools, err := coppicegenkit.Tools(list, coppicegenkit.Options{Session: conversation}) // a function of yours
//	response, err := genkit.Generate(ctx, g, ai.WithPrompt("..."), ai.WithTools(tools...))
//
// What a call did wrong reaches the model as the output of the call, so that
// it can mend it; an error ends the generation and comes only when the host has
// ended. The end of a call's context interrupts its code and keeps the session.
//
// The tools may be used from any goroutine. The package is a module of its own,
// so that Genkit is linked only by programs that use it.
package genkit
