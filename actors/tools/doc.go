// Package tools is the way from package coppice to the tools of this machine:
// the folders that describe them, their virtual environments, their processes,
// and the validator. It holds no actor; actors/launcher keeps the processes that
// it starts.
//
// Any goroutine may call it.
package tools
