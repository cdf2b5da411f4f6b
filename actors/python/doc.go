// Package python is the way from package coppice to the Python interpreters of
// this machine: which one a session gets, what it may see of the host's
// environment, the managed environment that set-up builds, and the helpers that
// every session has. It holds no actor and adds nothing to internal/pyenv
// and pysrc, which only packages below actors can import; the documentation of
// each name is there.
//
// Any goroutine may call it. Nothing here changes the environment of this
// process.
package python
