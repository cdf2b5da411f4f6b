// Package pty is a terminal for tests: what a program writes to it can be waited
// for, and what is typed there the program reads. It needs Linux.
package pty
