package jupyter

import "time"

// Direction says which way a traced thing went.
type Direction string

// The directions.
const (
	// Sent and Received are messages on a WebSocket.
	Sent     Direction = "sent"
	Received Direction = "received"
	// Requested is a REST request with its answer.
	Requested Direction = "requested"
)

// TraceRecord describes one message or one REST request, without its contents.
type TraceRecord struct {
	Direction Direction
	// Kernel is the kernel's id; "" for a REST request.
	Kernel string

	// Channel, Type, ID, Parent and Bytes describe a message. Parent is the id
	// of the request that it answers; Bytes is the size of the frame.
	Channel, Type, ID, Parent string
	Bytes                     int

	// Method, Path, Code and Duration describe a REST request. Code is 0 when
	// there was no answer.
	Method, Path string
	Code         int
	Duration     time.Duration
}

// trace tells the host of r.
func (c *Client) trace(r TraceRecord) {
	if c.opts.Trace != nil {
		c.opts.Trace(r)
	}
}
