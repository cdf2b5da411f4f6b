package jupyter

import "errors"

// recordKind says what a record in the spool is.
type recordKind byte

// The kinds of records. Their content is the message's, as it came.
const (
	recordStream recordKind = iota + 1
	recordDisplay
	recordUpdate
	recordResult
	recordClear
	recordError
	recordInput
	// recordRateLimited marks the place where the server began to drop output;
	// it has no content.
	recordRateLimited
	// recordGap marks the place where a connection that broke swallowed
	// messages; its content is their count, or nothing when it is not known.
	recordGap
	// recordComm is a message of a comm; its content is a wireComm.
	recordComm
)

// outputKinds are the message types that are output of an execution.
var outputKinds = map[string]recordKind{
	typeStream:            recordStream,
	typeDisplayData:       recordDisplay,
	typeUpdateDisplayData: recordUpdate,
	typeExecuteResult:     recordResult,
	typeClearOutput:       recordClear,
	typeError:             recordError,
	typeInputRequest:      recordInput,
	typeCommOpen:          recordComm,
	typeCommMsg:           recordComm,
	typeCommClose:         recordComm,
}

// newRecord packs a message for the spool: kind, length of id, id, content. Only
// an input request needs its id again. The content is copied, since it refers
// to the buffer of the next frame.
func newRecord(kind recordKind, id string, content []byte) []byte {
	if len(id) > 255 {
		id = id[:255]
	}
	rec := make([]byte, 0, 2+len(id)+len(content))
	rec = append(rec, byte(kind), byte(len(id)))
	rec = append(rec, id...)
	return append(rec, content...)
}

// splitRecord undoes newRecord.
func splitRecord(rec []byte) (kind recordKind, id string, content []byte, err error) {
	if len(rec) < 2 || len(rec) < 2+int(rec[1]) {
		return 0, "", nil, errors.New("a spooled record is damaged")
	}
	n := int(rec[1])
	return recordKind(rec[0]), string(rec[2 : 2+n]), rec[2+n:], nil
}
