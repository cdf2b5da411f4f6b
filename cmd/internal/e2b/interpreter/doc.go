// Package interpreter is E2B's code interpreter over HTTP: contexts, which are sessions
// of one workspace, and code that runs in them.
//
//	POST   /execute                 run code; its output as JSON lines
//	GET    /contexts                those there are
//	POST   /contexts                make one
//	DELETE /contexts/{id}           end one
//	POST   /contexts/{id}/restart   lose its variables
//
// # Guarantees
//
//   - Code of one context runs in the order in which it came, one at a time; contexts do
//     not wait for each other.
//   - A client that leaves interrupts its code. So does the end of the server.
//   - The variables of the environment that a request names are there for its code alone.
//   - Every stream ends with end_of_execution, unless the server is cut off: what became of
//     code whose kernel died is an error in it, and what is not as it was since a context
//     was kept on disk is in its stderr.
//   - The default context is there from the beginning, and cannot be lost: removing it
//     loses its variables.
//
// Languages other than Python are those of the kernelspecs that the host has, on the gateway
// backend; others are refused with 404, whose text the clients show. Code that names a language
// and no context has one context for each language.
//
// All methods may be called from any goroutine.
package interpreter
