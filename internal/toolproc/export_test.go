package toolproc

import (
	"context"
	"encoding/json"
	"net"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/toolspec"
)

// Attach is a tool that serves at an address without a process. Only runs can be asked
// of it.
func Attach(tool *toolspec.Tool, at net.Addr) *Process {
	return &Process{
		o: Options{Tool: tool}.withDefaults(), port: at.(*net.TCPAddr).Port, client: newClient(), stderr: process.NewRing(process.RingOptions{}),
	}
}

// Detach closes what Attach has opened.
func (p *Process) Detach() { p.client.CloseIdleConnections() }

// FreePort returns a port that was not returned before.
func FreePort(ctx context.Context) (int, error) { return thePorts.free(ctx) }

// DetailOf takes the words for people out of an error's body.
var DetailOf = detailOf

// FailedWith is the type of the exception behind a failed run, and whether it is for
// want of memory.
func FailedWith(detail, stderr string) (kind string, memory bool) {
	f := failedWith(detail, stderr)
	return f.kind, f.memory()
}

// Bounded is the end of a text that is too long for a result.
var Bounded = bounded

// ReadUpload reads a file as inputs have it.
func ReadUpload(key string, v json.RawMessage) (name, kind string, data []byte, err error) {
	u, err := readUpload(key, v)
	return u.name, u.kind, u.data, err
}

// UploadHeader is how a form names a file.
func UploadHeader(key, name, kind string) string {
	return upload{name: name, kind: kind}.header(key).Get("Content-Disposition")
}
