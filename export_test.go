package coppice

// RunNotebookOn is RunNotebook on a stream of the test.
var RunNotebookOn = runNotebook
