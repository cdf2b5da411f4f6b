package jupyter

import (
	"encoding/json"

	"github.com/coppice-run/coppice/messages"
)

// repeatReplyContent is the content of a reply; see page.
type repeatReplyContent struct {
	Messages []repeated `json:"messages"`
	Through  int64      `json:"through"`
	Sent     int64      `json:"sent"`
	More     bool       `json:"more"`
	Asks     *repeated  `json:"asks"`
}

// repeated is a message that a kernel repeats.
type repeated struct {
	Number  int64            `json:"number"`
	ID      string           `json:"id"`
	Channel string           `json:"channel"`
	Type    string           `json:"type"`
	Content messages.RawJSON `json:"content"`
}

// about is the message, which m answers about.
func (r repeated) about(m *message) *message {
	return &message{
		channel: r.Channel, content: r.Content, parent: m.parent,
		header: header{MsgID: r.ID, MsgType: r.Type, Session: m.header.Session, Number: r.Number},
	}
}

// decodePage reads an answer.
func decodePage(m *message) (*page, error) {
	var in repeatReplyContent
	if err := json.Unmarshal(m.content, &in); err != nil {
		return nil, err
	}
	p := &page{through: in.Through, sent: in.Sent, more: in.More && len(in.Messages) > 0}
	last := int64(0)
	for _, one := range in.Messages {
		if one.Number <= last {
			return nil, errContent
		}
		last = one.Number
		p.messages = append(p.messages, one.about(m))
	}
	if in.Asks != nil {
		p.asks = in.Asks.about(m)
	}
	if p.through < last {
		return nil, errContent
	}
	return p, nil
}
