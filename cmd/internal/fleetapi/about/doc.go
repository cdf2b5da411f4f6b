// Package about finds out what a request to a server of a fleet is about: which session or workspace,
// and what it does there. It decides nothing of where that is. Any goroutine may call it; it has
// none.
package about
