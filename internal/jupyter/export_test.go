package jupyter

// Message is what the tests see of a decoded message.
type Message struct {
	Channel, ID, Type, Session, Parent, Content string
	// Buffers are one text, each with a "|" after it.
	Buffers string
}

// DecodeFrame decodes one frame.
func DecodeFrame(v1 bool, kind int, data []byte) (Message, error) {
	m, err := decodeFrame(v1, kind, data)
	buffers := ""
	for _, b := range m.buffers {
		buffers += string(b) + "|"
	}
	return Message{m.channel, m.header.MsgID, m.header.MsgType, m.header.Session, m.parent.MsgID, string(m.content), buffers}, err
}

// EncodeFrame encodes a message with a parent and any content.
func EncodeFrame(v1 bool, m Message, content any) (kind int, data []byte, err error) {
	f, err := encodeMessage(v1, m.Channel, header{MsgID: m.ID, MsgType: m.Type, Session: m.Session}, &header{MsgID: m.Parent}, content)
	return f.kind, f.data, err
}

// DecodeContent reads a content in every way in which this package reads one.
func DecodeContent(content []byte) {
	for kind := recordStream; kind <= recordComm; kind++ {
		_, _ = decodeOutput(kind, "id", content)
	}
	_, _, _ = decodeReply(content)
	_, _ = decodeInfo(content)
	_ = decodeState(content)
	_ = decodeRestart(content)
	_ = decodeStreamText(content)
	_, _ = decodeKernelspecs(content)
	_, _ = decodeKernelModel(content)
}

// RecordRoundTrip packs and unpacks a record.
func RecordRoundTrip(kind byte, id string, content []byte) (byte, string, []byte, error) {
	r, err := splitRecord(newRecord(recordKind(kind), 1<<40, id, content))
	if err == nil && r.number != 1<<40 {
		err = errContent
	}
	return byte(r.kind), r.id, r.content, err
}

// SplitRecord unpacks any bytes.
func SplitRecord(rec []byte) error {
	_, err := splitRecord(rec)
	return err
}

// Cursor is a cursor whose messages are their numbers.
type Cursor struct{ c *cursor }

// CursorStep is what leaves it: a number, or how many are lost.
type CursorStep struct{ Number, Lost int64 }

// NewCursor returns a cursor.
func NewCursor() Cursor { return Cursor{newCursor()} }

func numbered(n int64) *message { return &message{header: header{Number: n}} }

func cursorSteps(steps []step) (out []CursorStep) {
	for _, s := range steps {
		if s.message != nil {
			out = append(out, CursorStep{Number: s.message.header.Number})
		} else {
			out = append(out, CursorStep{Lost: s.lost})
		}
	}
	return out
}

// Take takes a message that came by itself.
func (c Cursor) Take(n int64) []CursorStep { return cursorSteps(c.c.take(numbered(n))) }

// Answer takes a page.
func (c Cursor) Answer(numbers []int64, through, sent int64, more bool) []CursorStep {
	p := page{through: through, sent: sent, more: more}
	for _, n := range numbers {
		p.messages = append(p.messages, numbered(n))
	}
	return cursorSteps(c.c.answer(p))
}

// GiveUp ends the wait.
func (c Cursor) GiveUp() []CursorStep { return cursorSteps(c.c.giveUp()) }

// Question is what the kernel would be asked.
func (c Cursor) Question() (since, until int) { return int(c.c.next - 1), int(c.c.until()) }

// Behind reports whether something is missing.
func (c Cursor) Behind() bool { return c.c.behind() }

// Held is how many messages wait, Next the number whose turn it is less one.
func (c Cursor) Held() int { return len(c.c.held) }

// Next is how many numbers have left.
func (c Cursor) Next() int { return int(c.c.next - 1) }
