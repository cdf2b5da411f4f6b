// Package escape is the table of what code tries to get out of its isolation, and what
// stands against it on each rung: every cell is a test, from root and from an ordinary
// user. Its tests say which rungs the machine has, and which it lacks and why. They are
// for Linux.
package escape
