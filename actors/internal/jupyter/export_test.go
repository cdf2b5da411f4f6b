package jupyter

// Message is what the tests see of a decoded message.
type Message struct {
	Channel, ID, Type, Session, Parent, Content string
}

// DecodeFrame decodes one frame.
func DecodeFrame(v1 bool, kind int, data []byte) (Message, error) {
	m, err := decodeFrame(v1, kind, data)
	return Message{m.channel, m.header.MsgID, m.header.MsgType, m.header.Session, m.parent.MsgID, string(m.content)}, err
}

// EncodeFrame encodes a message with a parent and any content.
func EncodeFrame(v1 bool, m Message, content any) (kind int, data []byte, err error) {
	f, err := encodeMessage(v1, m.Channel, header{MsgID: m.ID, MsgType: m.Type, Session: m.Session}, &header{MsgID: m.Parent}, content)
	return f.kind, f.data, err
}

// DecodeContent reads a content in every way in which this package reads one.
func DecodeContent(content []byte) {
	for kind := recordStream; kind <= recordGap; kind++ {
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
	k, i, c, err := splitRecord(newRecord(recordKind(kind), id, content))
	return byte(k), i, c, err
}

// SplitRecord unpacks any bytes.
func SplitRecord(rec []byte) error {
	_, _, _, err := splitRecord(rec)
	return err
}
