// Package highlight has what chroma needs to colour code: its languages and two of its
// styles, read when something is coloured for the first time.
//
// chroma's own packages lexers and styles read all of theirs while a program starts: that
// was half of what any command of coppice took before its first line. Only the tests of
// this package import them.
//
// chroma.zip is made of them by `go test ./internal/highlight -update`, and a test says when
// it differs from the version of chroma that go.mod names. Languages that chroma
// describes by functions of Go cannot be in it; they are listed in the test.
package highlight
