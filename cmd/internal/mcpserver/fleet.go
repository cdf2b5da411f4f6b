package mcpserver

import (
	"crypto/rand"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fleet is what a server has to have that is one of several.
type Fleet struct {
	// Secret is what handles are made of, so that all servers take those of each. nil: one of
	// the server's own.
	Secret []byte
	// Tag is the number of this server, of eight digits, which no other has: it is told by it which
	// server has a connection or an artifact. 0: it is alone.
	Tag int
}

// NewTag returns a number for a server, by chance.
func NewTag() int {
	const least, most = 10_000_000, 100_000_000
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	n := uint64(0)
	for _, one := range b {
		n = n<<8 | uint64(one)
	}
	return least + int(n%(most-least)) //nolint:gosec // it is below most
}

// artifacts is how many numbers of artifacts belong to a tag.
const artifacts = 1_000_000

// FirstArtifact is the number of the first artifact of the host of a server, for
// [coppice.OutputOptions].
func (f Fleet) FirstArtifact() int { return f.Tag * artifacts }

// connection is a new name for a session of the protocol, which says where it is.
func (f Fleet) connection() string {
	if f.Tag == 0 {
		return rand.Text()
	}
	return strconv.Itoa(f.Tag) + "-" + rand.Text()
}

// handleHeader has the handle that a server of a fleet has made for a call which names no session,
// so that it knows which one serves it. Others make none that counts.
const handleHeader = "Coppice-Mcp-Session"

// chosen is the handle that was made for a call, if any.
func chosen(extra *mcp.RequestExtra) string {
	if extra == nil {
		return ""
	}
	return extra.Header.Get(handleHeader)
}

// stateOf is a new state that brings a client back, which says the session that the call has
// begun: the client makes it again without one.
func stateOf(handle string) string { return rand.Text() + stateHandle + handle }

const stateHandle = "."
