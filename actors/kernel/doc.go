// Package kernel is the actor that owns one live interpreter and serves one
// session key, and the interface through which it talks to it.
package kernel
