// Package secondlook is an index of what hostile testing has found: a row for each
// defect, in the order in which they were found, with the tests that hold the mend.
//
// A row says what went wrong, and then one of: which tests fail when it comes back, which
// document says that it is so and why, or why it is no defect. The package's own test
// fails when a test that a row names is not in the tree any more, or a document lacks the
// sentence. So a test can be moved or renamed only together with its row.
//
// The letters say where something was found:
//
//	T  the tool that runs Python: outputs, times, working directories
//	N  notebooks and the runner
//	P  functions of the host, the agent's conversation, the launcher of tools
//	E  embedding, HTTP, the Model Context Protocol, commands
//	C  faults: killed processes, hostile clients, leaks
package secondlook
