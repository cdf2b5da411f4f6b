package jupyterapi

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// What is said over comms, in either direction.
const (
	commOpen  = "comm_open"
	commMsg   = "comm_msg"
	commClose = "comm_close"
)

// commKinds are the messages for what objects of a kernel say.
var commKinds = map[messages.CommAction]string{messages.CommOpen: commOpen, messages.CommUpdate: commMsg, messages.CommClose: commClose}

// commContent is what a message of a comm says.
type commContent struct {
	ID     string          `json:"comm_id"`
	Target *string         `json:"target_name,omitempty"` // when it is opened
	Data   json.RawMessage `json:"data"`
}

// comms are the comms of a kernel that are open; the zero value has none. The methods may be
// called from any goroutine.
type comms struct {
	mu   sync.Mutex
	open map[string]string // the target of each; guarded by mu
}

// add notes one.
func (c *comms) add(id, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]string{}
	}
	c.open[id] = target
}

// has reports whether there is one of an ID.
func (c *comms) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.open[id]
	return there
}

// remove forgets one; false: there was none.
func (c *comms) remove(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.open[id]
	delete(c.open, id)
	return there
}

// clear forgets all, and returns which there were.
func (c *comms) clear() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := slices.Sorted(maps.Keys(c.open))
	c.open = nil
	return ids
}

// list is what comm_info_reply has: all, or those of one target.
func (c *comms) list(target string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := map[string]any{}
	for id, t := range c.open {
		if target == "" || target == t {
			list[id] = map[string]string{"target_name": t}
		}
	}
	return list
}

// hearing is code that gives a message to the manager of comms, which both kinds of kernels
// have where the package comm is installed. %s is the message, as a text.
const hearing = `import base64, comm, json
said = json.loads(said)
said["buffers"] = [memoryview(base64.b64decode(b)) for b in said["buffers"]]
getattr(comm.get_comm_manager(), said["header"]["msg_type"])(None, None, said)
`

// commless is an expression that is true in a kernel that knows no comms.
const commless = `__import__("importlib.util").util.find_spec("comm") is None`

// quoted is a text as a string of JSON, which is one of Python, too.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a string can always be written
	return string(data)
}

// orNone is an object that may have been left out.
func orNone(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return none
	}
	return data
}
