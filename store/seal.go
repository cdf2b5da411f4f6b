package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// KeySize is the length of a key that records are sealed with.
const KeySize = 32

// Limits of a record's own bytes, without its large buffers.
const (
	// MaxRecord is the longest body of a record.
	MaxRecord = 64 << 20
	// inline is the longest section that stands in the record itself.
	inline = 16 << 10
)

// Version is that of the form of records: a program reads those of its own alone.
const Version = 1

// magic begins a record.
var magic = fmt.Appendf(nil, "coppice record %d\n", Version)

// Body is what a record holds: the header, and where its sections are. It is exported, as
// are [Seal] and [Unseal], for who writes another [Store].
type Body struct {
	Header Header `json:"header"`
	Parts  []Part `json:"parts"`
	// Place is where the record stands, for a store whose places are bound to what stands
	// there. A [Folder] does not use it.
	Place string `json:"place,omitempty"`
}

// Part is one section: in the record, or in a file that is named after its sum.
type Part struct {
	Sum  string `json:"sum"` // SHA-256, in hexadecimal
	Size int64  `json:"size"`
	Data []byte `json:"data,omitempty"`
	// At tells the copies of one sum apart, for a store that may have several. A [Folder]
	// has one.
	At string `json:"at,omitempty"`
}

// Apart reports whether the section stands in a file of its own: the record has its Data
// when it does not.
func (p Part) Apart() bool { return p.Size > inline }

// Seal returns a record: the magic, the length of what follows, the body as JSON, and
// the seal of all of it.
func Seal(b Body, key []byte) ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write a record: %w", err)
	}
	if len(text) > MaxRecord {
		return nil, fmt.Errorf("write a record: it has %d bytes, and %d is the most", len(text), MaxRecord)
	}
	out := make([]byte, 0, len(magic)+4+len(text)+sha256.Size)
	out = append(out, magic...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(text)))
	out = append(out, text...)
	return append(out, seal(out, key)...), nil
}

// Unseal reads a record. Nothing of it is looked at before its seal was found to be
// right; the error is a [*RefusedError].
func Unseal(data, key []byte) (Body, error) {
	var b Body
	rest, ok := bytes.CutPrefix(data, magic)
	switch {
	case !ok && len(data) < len(magic) && bytes.HasPrefix(magic, data):
		return b, refuse(ReasonCut, "its record is cut off")
	case !ok:
		return b, refuse(ReasonForm, "its file is no record, or one of another version of this program")
	case len(rest) < 4:
		return b, refuse(ReasonCut, "its record is cut off")
	}
	size := int64(binary.BigEndian.Uint32(rest))
	switch have := int64(len(rest)) - 4; {
	case have < size+sha256.Size:
		return b, refuse(ReasonCut, "its record is cut off: %d bytes of %d are there", have, size+sha256.Size)
	case have > size+sha256.Size:
		return b, refuse(ReasonSeal, "its record was changed: it is longer than it says")
	}
	sealed := data[:len(data)-sha256.Size]
	if !hmac.Equal(seal(sealed, key), data[len(sealed):]) {
		return b, refuse(ReasonSeal, "its record was changed, or sealed with the key of another host")
	}
	if err := json.Unmarshal(rest[4:4+size], &b); err != nil {
		return b, refuse(ReasonForm, "its record cannot be read: %v", err)
	}
	if err := b.check(); err != nil {
		return b, refuse(ReasonForm, "its record cannot be read: %v", err)
	}
	return b, nil
}

// check refuses a body that does not fit together. Only a host with the key writes one.
func (b Body) check() error {
	if len(b.Parts) != len(b.Header.Sections) {
		return errors.New("it has more parts than sections, or fewer")
	}
	for i, p := range b.Parts {
		switch {
		case p.Size != b.Header.Sections[i] || p.Size < 0:
			return errors.New("a part is not as long as its section")
		case !validSum(p.Sum):
			return errors.New("a part has no sum")
		case !p.Apart() && int64(len(p.Data)) != p.Size, p.Apart() && len(p.Data) != 0:
			return errors.New("a part is not where it belongs")
		}
	}
	return nil
}

// validSum reports whether a text is a sum in hexadecimal, which is also a file's name.
func validSum(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// seal is the code that only who has the key can make.
func seal(data, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(data)
	return h.Sum(nil)
}
