package jupyter

import (
	"encoding/binary"
	"errors"
)

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

// recordHead is how long a record is before its id.
const recordHead = 10

// newRecord packs a message for the spool: kind, length of id, number, id, content. Only
// an input request needs its id again. The content is copied, since it refers
// to the buffer of the next frame. number is the message's in its execution, 0 where
// there is none.
func newRecord(kind recordKind, number int64, id string, content []byte) []byte {
	if len(id) > 255 {
		id = id[:255]
	}
	rec := make([]byte, 0, recordHead+len(id)+len(content))
	rec = append(rec, byte(kind), byte(len(id)))
	rec = binary.BigEndian.AppendUint64(rec, uint64(number)) //nolint:gosec // it is not negative
	rec = append(rec, id...)
	return append(rec, content...)
}

// record is one that was unpacked.
type record struct {
	kind    recordKind
	number  int64
	id      string
	content []byte
}

// splitRecord undoes newRecord.
func splitRecord(rec []byte) (record, error) {
	if len(rec) < recordHead || len(rec) < recordHead+int(rec[1]) {
		return record{}, errors.New("a spooled record is damaged")
	}
	end := recordHead + int(rec[1])
	return record{
		kind: recordKind(rec[0]), number: int64(binary.BigEndian.Uint64(rec[2:recordHead])), //nolint:gosec // as newRecord wrote it
		id: string(rec[recordHead:end]), content: rec[end:],
	}, nil
}
