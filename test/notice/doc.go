// Package notice gathers the licences of what the command coppice is built of: of each
// module that is linked on Linux, macOS and Windows, of the Go standard library, and of the
// packages of npm that are bundled for its live view.
//
// The text comes from the module cache, from the folders of the packages that are linked
// and those above them, so that a part with a licence of its own is not missed. Its test
// holds the file NOTICE against that, and
//
//	go test ./test/notice -update
//
// writes it.
package notice
