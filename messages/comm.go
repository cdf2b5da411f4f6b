package messages

// CommAction is what a [Comm] does.
type CommAction string

// The actions.
const (
	CommOpen   CommAction = "open"
	CommUpdate CommAction = "update"
	CommClose  CommAction = "close"
)

// CommRequest stands in the data of a [Comm] for the ID of the request that is served: who
// gets the message knows it, and the kernel may not.
const CommRequest = "coppice:request"

// Comm is a message of an object in the kernel to its counterpart in a frontend, such as
// a widget's, and no output. Calls that asked for them get them, see Execute.Comms.
type Comm struct {
	Position
	// ID names the object, and the comm between the two.
	ID     string     `json:"id"`
	Action CommAction `json:"action"`
	// Target names what shall be there at the other end; with CommOpen alone.
	Target string `json:"target,omitempty"`
	// Data is the message: of a widget, an object with its state. Where it names the request
	// that is served, as an Output widget does to take what that shows, it says [CommRequest].
	Data RawJSON `json:"data,omitempty"`
	// Metadata stands beside the message: of a widget that opens, the version of its protocol.
	Metadata RawJSON `json:"metadata,omitempty"`
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
	n := eventOverhead + len(e.ID) + len(e.Target) + len(e.Data) + len(e.Metadata)
	for _, b := range e.Buffers {
		n += len(b)
	}
	return n
}
