package messages

// CommAction is what a [Comm] does.
type CommAction string

// The actions.
const (
	CommOpen   CommAction = "open"
	CommUpdate CommAction = "update"
	CommClose  CommAction = "close"
)

// Comm is a message of an object in the kernel to its counterpart in a frontend, such as
// a widget's, and no output. Calls that asked for them get them, see Execute.Comms.
type Comm struct {
	Position
	// ID names the object, and the comm between the two.
	ID     string     `json:"id"`
	Action CommAction `json:"action"`
	// Target names what shall be there at the other end; with CommOpen alone.
	Target string `json:"target,omitempty"`
	// Data is the message: of a widget, an object with its state.
	Data RawJSON `json:"data,omitempty"`
	// Buffers are bytes that belong to Data, which says where; base64 in JSON.
	Buffers [][]byte `json:"buffers,omitempty"`
}

func (Comm) event() {}

// Type returns "comm".
func (Comm) Type() string { return "comm" }

// At returns e at position p.
func (e Comm) At(p Position) Event { e.Position = p; return e }

// Size returns about how many bytes e holds.
func (e Comm) Size() int {
	n := eventOverhead + len(e.ID) + len(e.Target) + len(e.Data)
	for _, b := range e.Buffers {
		n += len(b)
	}
	return n
}
