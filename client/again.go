package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// arrived reports whether a request that failed may have been heard: all may, but those for which
// there was no connection.
func arrived(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return !ok || dial.Op != "dial"
}

// errUnknown is what becomes of a request whose first attempt may have reached a server that is
// gone. It is not sent to the next one: the code may have run.
func errUnknown() *Error {
	return &Error{
		Status: http.StatusGone, Code: "lost", Message: "the server was started again after the code was sent: whether it ran is not known",
		Hint: "it is not sent a second time; look at what it was to do before you run it again",
	}
}

// errGone is what becomes of an execution that was begun at a server that is gone.
func errGone() *Error {
	return &Error{
		Status: http.StatusGone, Code: "lost", Message: "the server was started again while the code ran: what became of it is not known",
		Hint: "look at what it was to do before you run it again",
	}
}

// attempt is the first attempt to begin an execution that may have arrived. The zero value: there
// was none.
type attempt struct {
	began time.Time
	at    *address
}

// ago is how long ago it was: the clock of the process stands still while its machine sleeps, and
// that on the wall may be put back.
func (a attempt) ago() time.Duration {
	return max(time.Since(a.began), time.Now().Round(0).Sub(a.began.Round(0)))
}

// resume waits after an attempt to begin an execution that failed with err, until patience ends,
// and finds out how to go on, see [Client.again].
func (c *Client) resume(ctx context.Context, wait *pause, id string, first attempt, err error) (life string, begun *Execution, _ error) {
	for wait.next(ctx, err) {
		if first.at == nil {
			return "", nil, nil
		}
		life, begun, err = c.again(ctx, id, first)
		if err == nil {
			return life, begun, nil
		}
		if told, ok := errors.AsType[*Error](err); ok {
			return "", nil, told
		}
	}
	return "", nil, err
}

// again finds out whether a request to begin an execution may be sent once more, the first
// attempt of which may have arrived. The life is the one of the server to which it may go, ""
// when others see to that: a fleet by its epochs. An execution is the one that was begun. What an
// earlier life of the server may have begun is an [Error] with the code lost; any other error
// says that the server could not be asked.
func (c *Client) again(ctx context.Context, id string, first attempt) (life string, begun *Execution, err error) {
	req, err := c.request(ctx, http.MethodGet, "api/health", nil, nil)
	if err != nil {
		return "", nil, err
	}
	req.Header.Set(headerServer, "?")
	data, header, err := c.exchange(req)
	if err != nil {
		return "", nil, err
	}
	var h Health
	if err := json.Unmarshal(data, &h); err != nil {
		return "", nil, fmt.Errorf("read how the server is: %w", err)
	}
	life = header.Get(headerServer)
	switch {
	case header.Get(headerNode) != "" || life == "" || h.Uptime == 0:
		return "", nil, nil
	case c.at.Load() == first.at && h.Uptime >= first.ago().Seconds():
		return life, nil, nil
	}
	begun, err = c.taken(ctx, id)
	return "", begun, err
}

// taken is an execution that a server before this one has begun, and that this one has taken over.
// What it has not is an [Error] with the code lost.
func (c *Client) taken(ctx context.Context, id string) (*Execution, error) {
	data, err := c.answer(ctx, http.MethodGet, execution(id, ""), nil, nil)
	if told, ok := errors.AsType[*Error](err); ok && told.Status == http.StatusNotFound {
		return nil, errUnknown()
	}
	if err != nil {
		return nil, err
	}
	var x Execution
	if err := json.Unmarshal(data, &x); err != nil {
		return nil, fmt.Errorf("read the execution %s: %w", id, err)
	}
	return &x, nil
}
