// Package adk offers the tools of a [github.com/coppice-run/coppice.Host] to agents that are built with
// the Agent Development Kit (google.golang.org/adk/v2): Python that stays alive,
// the shell, and the tools of the host's launcher, each a function tool.
//
//	list, err := coppiceagent.Tools(host, coppiceagent.Options{})
//	tools, err := coppiceadk.Tools(list, coppiceadk.Options{})
//	a, err := llmagent.New(llmagent.Config{Name: "analyst", Model: model, Tools: tools})
//
// Each session of ADK has a Python session of its own, unless [Options] say
// otherwise. What a call did wrong reaches the model as the result of the call,
// so that it can mend it; an error comes only when the host has ended. The end of
// an invocation's context interrupts its code and keeps the session.
//
// A function response of ADK holds no pictures: Options.Artifacts saves them as
// artifacts of the session, and the result names them.
//
// The tools may be used from any goroutine. The package is a module of its own,
// so that ADK is linked only by programs that use it.
package adk
