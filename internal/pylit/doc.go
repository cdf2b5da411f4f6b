// Package pylit writes Python literals: what stands in the code that Coppice gives
// an interpreter, and in the cells that it writes for people.
//
// A literal is on one line, and evaluates to the text that it was made of in every
// version of Python 3, whatever the text holds; a fuzz test asks a Python.
package pylit
